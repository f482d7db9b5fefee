package draft

import (
	"math"
	"testing"

	"github.com/grovellm/grove/sample"
	"pgregory.net/rapid"
)

// Chances are in order and add up to 1 at most, and the first candidate is the drafter's own
// choice.
func TestCoupledChances(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const vocab = 40
		temperature := rapid.SampledFrom([]float32{.3, 1, 2}).Draw(r, "temperature")
		s, err := sample.New(sample.Params{Temperature: temperature, Seed: 3}, vocab)
		if err != nil {
			r.Fatal(err)
		}
		k := rapid.IntRange(1, 12).Draw(r, "k")
		logits := rapid.SliceOfN(rapid.Float32Range(-8, 8), vocab, vocab).Draw(r, "logits")
		c := s.Top(make([]sample.Candidate, 0, k), logits, 7, nil)
		first := c[0].Token
		CoupledChances(c, k)
		sum := 0.0
		for i, x := range c {
			if i > 0 && x.LogProb > c[i-1].LogProb {
				r.Fatalf("out of order: %v", c)
			}
			sum += math.Exp(float64(x.LogProb))
		}
		if !(sum <= 1+1e-5) || c[0].Token != first {
			r.Fatalf("%v: chances add up to %g, want 1 at most, and token %d first", c, sum, first)
		}
		CoupledChances(nil, k)
	})
}
