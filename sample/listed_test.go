package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TopOf ranks as Top does where all tokens that are not listed have no chance, and leaves them
// their part of the probability.
func TestTopOfIsTopOfTheListed(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		vocab := rapid.SampledFrom([]int{1, 2, 50, 300, 1500}).Draw(r, "vocab")
		p := genParams(vocab).Draw(r, "params")
		if rapid.Bool().Draw(r, "plain") {
			p = Params{Temperature: p.Temperature, Seed: p.Seed}
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "order"), 1))
		all := genLogits(r, vocab)
		var tokens []int32
		var logits []float32
		listed := make([]bool, vocab)
		for _, token := range rnd.Perm(vocab)[:rapid.IntRange(0, vocab).Draw(r, "listed")] {
			tokens, logits = append(tokens, int32(token)), append(logits, all[token])
			listed[token] = true
			if rnd.IntN(10) == 0 {
				tokens, logits = append(tokens, -1), append(logits, negInf)
			}
		}
		for token, in := range listed {
			if !in {
				all[token] = negInf
			}
		}
		text := rapid.SliceOfN(rapid.Int32Range(0, int32(min(vocab, 8))-1), 0, 12).Draw(r, "text")
		position := rapid.IntRange(0, 1<<20).Draw(r, "position")
		k := rapid.SampledFrom([]int{0, 1, 2, 5, 16, 200}).Draw(r, "k")
		share := rapid.SampledFrom([]float64{0, 0.001, 0.5, 0.9}).Draw(r, "outside") // of the probability
		s, err := New(p, vocab)
		if err != nil {
			r.Fatal(err)
		}
		h := NewHistory(&p)
		for _, token := range text {
			h.Push(token)
		}
		want := s.Top(make([]Candidate, 0, k), all, position, h)
		// What all the listed have is what one of them has over its share.
		outside, covered := math.Inf(-1), 0.0
		s.adjust(all, h)
		// Top's answer where nothing can be drawn
		want = slices.DeleteFunc(want, func(c Candidate) bool { return !(all[c.Token] > negInf) })
		_, largest := largest(all)
		if len(want) > 0 && !math.IsInf(float64(largest), 0) {
			outside = math.Log(share/(1-share)) + float64(all[want[0].Token])*s.steep() - float64(want[0].LogProb)
			if p.Temperature == 0 || !(p.TopK > 0 || p.TopP > 0 && p.TopP < 1 || p.MinP > 0) {
				covered = math.Log1p(-share)
			}
		}
		s.restore(all)
		if math.Abs(float64(largest)) > 1000 {
			r.Skip("logits that leave no digits")
		}
		before := slices.Clone(logits)
		got := s.TopOf(make([]Candidate, 0, k), logits, tokens, outside, position, h)
		if !slices.EqualFunc(before, logits, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			r.Fatal("logits were changed")
		}
		if len(got) != len(want) {
			r.Fatalf("%d candidates, want %d", len(got), len(want))
		}
		// Equal scores may change places.
		for i, c := range want {
			j := slices.IndexFunc(got, func(g Candidate) bool { return g.Token == c.Token })
			if j < 0 && c.Score == want[len(want)-1].Score {
				continue
			}
			if j < 0 || math.Abs(got[j].Score-c.Score-covered) > 1e-4*(1+math.Abs(c.Score)) ||
				math.Abs(float64(got[j].LogProb)-float64(c.LogProb)-covered) > 1e-4*(1+math.Abs(float64(c.LogProb))) {
				r.Fatalf("place %d: %+v of %+v, want %+v and %g", i, got, c, want, covered)
			}
			if got[i].Score-got[j].Score > 1e-4*(1+math.Abs(c.Score)) {
				r.Fatalf("place %d has score %g, and token %d at %d %g", i, got[i].Score, c.Token, j, got[j].Score)
			}
		}
	})
}

func BenchmarkTopOf(b *testing.B) {
	for _, n := range []int{16384, 4096} {
		for _, temperature := range []float32{0, 1} {
			name := map[int]string{16384: "all", 4096: "quarter"}[n] + map[float32]string{0: "", 1: "/T=1"}[temperature]
			b.Run(name, func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				logits, tokens := make([]float32, n), make([]int32, n)
				for i := range logits {
					logits[i], tokens[i] = float32(r.NormFloat64()*2), int32(i*(16384/n))
				}
				logits[77] += 10
				s, _ := New(Params{Temperature: temperature}, 16384)
				dst := make([]Candidate, 0, 8)
				for i := 0; b.Loop(); i++ {
					if n == 16384 {
						s.Top(dst, logits, i, nil)
					} else {
						s.TopOf(dst, logits, tokens, 2, i, nil)
					}
				}
			})
		}
	}
}
