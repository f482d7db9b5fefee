package reject_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/speculate/reject"
)

// draw draws a token from q without replacement, and removes it.
func draw(rng *rand.Rand, q []float32) int32 {
	sum := float32(0)
	for _, v := range q {
		sum += v
	}
	at, last := rng.Float32()*sum, int32(0)
	for i, v := range q {
		if v > 0 {
			last = int32(i)
			at -= v
			if at < 0 {
				break
			}
		}
	}
	q[last] = 0
	return last
}

// Whatever was drawn or chosen, the resulting token has the target's distribution.
func TestTokensHaveTheLaw(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const vocab, runs = 4, 4000
		weights := func(name string) []float32 {
			w := rapid.SliceOfN(rapid.Float32Range(0, 1), vocab, vocab).Draw(r, name)
			w[rapid.IntRange(0, vocab-1).Draw(r, name+" has")] += .1
			return w
		}
		p, q := weights("p"), weights("q")
		drawn, chosen := rapid.IntRange(0, 3).Draw(r, "drawn"), rapid.IntRange(0, 2).Draw(r, "chosen")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		s := reject.New(vocab)
		one := func() int32 {
			s.Begin(p, rng.Float64)
			s.From(q, nil)
			left := append([]float32(nil), q...)
			for range drawn {
				if x := draw(rng, left); s.Drawn(x) {
					return x
				}
			}
			for x := range int32(chosen) {
				if s.Chosen(x) {
					return x
				}
			}
			return s.Rest()
		}
		var count [vocab]float64
		for range runs {
			count[one()]++
		}
		mass := 0.0
		for _, v := range p {
			mass += float64(v)
		}
		for x := range p {
			want := float64(p[x]) / mass * runs
			if d := math.Abs(count[x] - want); d > 6*math.Sqrt(want*(1-want/runs)+1) {
				r.Fatalf("token %d came %g times in %d, want %g: p %v, q %v, %d drawn and %d chosen", x, count[x],
					runs, want, p, q, drawn, chosen)
			}
		}
	})
}
