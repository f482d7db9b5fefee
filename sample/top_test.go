package sample

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// oracleTop ranks every kept token by its score in the plainest code.
func oracleTop(p Params, logits []float32, position int, text []int32) (order []int32) {
	kept, _ := oracleSupport(p, logits, text)
	l := oracleLogits(p, logits, text)
	top := l[kept[0]]
	if math.IsInf(float64(top), 0) {
		return kept[:1]
	}
	score := func(i int32) float64 {
		return float64(float64(l[i])*(1/float64(p.Temperature))) + Noise(p.Seed, position, i)
	}
	if p.Temperature == 0 {
		kept = kept[:0]
		for i := range l {
			kept = append(kept, int32(i))
		}
		score = func(i int32) float64 { return float64(l[i]) }
	}
	kept = slices.DeleteFunc(slices.Clone(kept), func(i int32) bool { return !(l[i] > negInf) })
	slices.SortFunc(kept, func(a, b int32) int {
		switch x, y := score(a), score(b); {
		case x > y || x == y && a < b:
			return -1
		default:
			return 1
		}
	})
	return kept
}

// Top is the oracle's order for all Params, its first token is Sample's, its probabilities are
// those of Probs from temperature 1 on, and its scores differ as the race's do.
func TestTopIsTheRace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		vocab := rapid.SampledFrom([]int{1, 2, 50, 300, 1500}).Draw(r, "vocab")
		p := genParams(vocab).Draw(r, "params")
		logits := genLogits(r, vocab)
		text := rapid.SliceOfN(rapid.Int32Range(0, int32(min(vocab, 8))-1), 0, 12).Draw(r, "text")
		position := rapid.IntRange(0, 1<<20).Draw(r, "position")
		k := rapid.SampledFrom([]int{0, 1, 2, 5, 16, 200}).Draw(r, "k")
		s, err := New(p, vocab)
		if err != nil {
			r.Fatal(err)
		}
		h := NewHistory(&p)
		for _, tok := range text {
			h.Push(tok)
		}
		if _, margin := oracleSupport(p, logits, text); margin < 1e-5 {
			r.Skip("the boundary is within rounding")
		}
		before := slices.Clone(logits)
		want := oracleTop(p, logits, position, text)
		want = want[:min(k, len(want))]
		dst := make([]Candidate, 0, k)
		var got []Candidate
		for range 2 { // state left from one call must not show in the next
			got = s.Top(dst, logits, position, h)
		}
		if len(got) != len(want) {
			r.Fatalf("%d candidates, want %d", len(got), len(want))
		}
		for i, c := range got {
			if c.Token != want[i] {
				r.Fatalf("place %d: token %d, want %d", i, c.Token, want[i])
			}
			if i > 0 && !(c.Score <= got[i-1].Score) || !(c.LogProb <= 0) {
				r.Fatalf("place %d: score %g after %g, log-probability %g", i, c.Score, got[max(i, 1)-1].Score, c.LogProb)
			}
		}
		if len(got) > 0 && got[0].Token != s.Sample(logits, position, h) {
			r.Fatalf("the first is %d, Sample chooses %d", got[0].Token, s.Sample(logits, position, h))
		}
		for i := range logits {
			if math.Float32bits(logits[i]) != math.Float32bits(before[i]) {
				r.Fatalf("logit %d was left changed", i)
			}
		}
		if p.Temperature == 0 {
			return
		}
		probs, scale := make([]float32, vocab), 1.0
		s.Probs(probs, logits, h)
		if t := float64(p.Temperature); t < 1 { // candidates have the probabilities of temperature 1 among the tokens kept
			scale = t
			kept, _ := oracleSupport(p, logits, text)
			l, sum := oracleLogits(p, logits, text), 0.0
			for _, i := range kept {
				sum += math.Exp(float64(l[i]) - float64(l[kept[0]]))
			}
			for _, i := range kept {
				probs[i] = float32(math.Exp(float64(l[i])-float64(l[kept[0]])) / sum)
			}
		}
		for i, c := range got {
			if q := math.Exp(float64(c.LogProb)); math.Abs(q-float64(probs[c.Token])) > 1e-4*q+1e-6 {
				r.Fatalf("place %d: probability %g, Probs says %g", i, q, probs[c.Token])
			}
			// beyond, rounding leaves nothing of the noise
			if l := float64(logits[c.Token]); math.Abs(l) < 1e4 && c.LogProb > -1e4 && len(got) > 1 {
				if n := c.Score - float64(c.LogProb); math.Abs(n-scale*Noise(p.Seed, position, c.Token)) > 1e-3+
					1e-6*math.Abs(l)*scale/float64(p.Temperature) {
					r.Fatalf("place %d: score − log-probability is %g, its noise %g", i, n, scale*Noise(p.Seed, position, c.Token))
				}
			}
		}
	})
}

// A sampler that was made like another chooses as that one does.
func TestLike(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const vocab = 300
		a, err := New(genParams(vocab).Draw(r, "params"), vocab)
		if err != nil {
			r.Fatal(err)
		}
		b, err := New(genParams(vocab).Draw(r, "others"), vocab)
		if err != nil {
			r.Fatal(err)
		}
		logits := genLogits(r, vocab)
		h := NewHistory(&Params{PresencePenalty: 1})
		h.Push(1)
		b.Sample(logits, 0, h)
		b.setLike(a)
		for position := range 5 {
			if x, y := a.Sample(logits, position, h), b.Sample(logits, position, h); x != y {
				r.Fatalf("position %d: %d and %d", position, x, y)
			}
		}
	})
}

func TestTopAllocatesNothing(t *testing.T) {
	const vocab = 20000
	logits := make([]float32, vocab)
	for i := range logits {
		logits[i] = float32(gumbel(mix(uint64(i))))
	}
	for _, p := range []Params{{}, {Temperature: 1}, {Temperature: .7}, {Temperature: 1, TopP: .9},
		{Temperature: 1, TopK: 9000}} {
		s, err := New(p, vocab)
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]Candidate, 0, 8)
		position := 0
		step := func() {
			s.Top(dst, logits, position, nil)
			position++
		}
		for range 20 {
			step()
		}
		if n := testing.AllocsPerRun(20, step); n != 0 {
			t.Errorf("%+v: %g allocations a call, want 0", p, n)
		}
	}
}

func BenchmarkTop(b *testing.B) {
	for name, p := range map[string]Params{"greedy": {}, "T=1": {Temperature: 1}, "T=0.7": {Temperature: .7},
		"top-p=0.95": {Temperature: 1, TopP: .95}} {
		b.Run(name, func(b *testing.B) {
			logits := benchLogits(true)[:16384]
			s, err := New(p, len(logits))
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]Candidate, 0, 8)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Top(dst, logits, i, nil)
			}
		})
	}
}
