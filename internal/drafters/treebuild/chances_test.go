package treebuild_test

import (
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/sample"
	"pgregory.net/rapid"
)

// Chances are in order and add up to at most 1, and the first candidate is the drafter's own
// choice.
func TestCoupledChances(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const vocab = 40
		temperature := rapid.SampledFrom([]float32{1e-4, .01, .3, 1, 2}).Draw(r, "temperature")
		s, err := sample.New(sample.Params{Temperature: temperature, Seed: 3}, vocab)
		if err != nil {
			r.Fatal(err)
		}
		k := rapid.IntRange(1, 12).Draw(r, "k")
		logits := rapid.SliceOfN(rapid.Float32Range(-40, 40), vocab, vocab).Draw(r, "logits")
		c := s.Top(make([]sample.Candidate, 0, k), logits, 7, nil)
		first := c[0].Token
		treebuild.CoupledChances(c, k, temperature)
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
		treebuild.CoupledChances(nil, k, temperature)
	})
}

// Near temperature 0 the chances are those of temperature 0, however far apart the logits are.
func TestCoupledChancesAreContinuous(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const vocab = 40
		temperature := rapid.SampledFrom([]float32{1e-4, .001, .01, .02}).Draw(r, "temperature")
		spread := rapid.SampledFrom([]float32{.1, 5, 50, 500}).Draw(r, "spread")
		logits := rapid.SliceOfN(rapid.Float32Range(-spread, spread), vocab, vocab).Draw(r, "logits")
		k := rapid.IntRange(1, vocab).Draw(r, "k")
		cold := must(sample.New(sample.Params{}, vocab))(r).Top(make([]sample.Candidate, 0, vocab), logits, 7, nil)
		s := must(sample.New(sample.Params{Temperature: temperature, Seed: 5}, vocab))(r)
		warm := s.Top(make([]sample.Candidate, 0, k), logits, 7, nil)
		treebuild.CoupledChances(warm, k, temperature)
		if len(warm) != k {
			r.Fatalf("%d candidates of %d: want %d", len(warm), vocab, k)
		}
		for _, x := range warm {
			i := slices.IndexFunc(cold, func(c sample.Candidate) bool { return c.Token == x.Token })
			// noise is from −4 to 20, and the noise of all candidates counts in the sum
			if d := math.Abs(float64(x.LogProb - cold[i].LogProb)); !(d < 50*float64(temperature)+1e-3+1e-5*float64(spread)) {
				r.Fatalf("temperature %g: token %d has the logarithm %g, at temperature 0 %g", temperature, x.Token,
					x.LogProb, cold[i].LogProb)
			}
		}
	})
}

func must[T any](v T, err error) func(t interface{ Fatal(...any) }) T {
	return func(t interface{ Fatal(...any) }) T {
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
