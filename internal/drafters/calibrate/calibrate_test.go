package calibrate_test

import (
	"math"
	"testing"

	"github.com/grovellm/grove/internal/drafters/calibrate"
	"pgregory.net/rapid"
)

// A new calibration changes nothing. What it saw often it predicts. Its results are always from 0 to 1.
func TestCalibration(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := calibrate.New()
		p := rapid.Float32Range(1e-4, 127./128).Draw(r, "p")
		logProb := float32(math.Log(float64(p)))
		depth := rapid.IntRange(1, 20).Draw(r, "depth")
		if v := c.Chances().Of(depth, logProb); math.Abs(float64(v-p)) > 1e-5 {
			r.Fatalf("of %g it makes %g", p, v)
		}
		rate := rapid.Float64Range(0, 1).Draw(r, "rate")
		sum := 0.0
		for range 1000 {
			sum += rate
			hit := sum >= 1
			if hit {
				sum--
			}
			c.Observe(depth, logProb, hit)
		}
		c.Fit()
		if v := c.Chances().Of(depth, logProb); p > .02 && math.Abs(float64(v)-rate) > .12 {
			r.Fatalf("of %g, accepted at a rate of %g, it makes %g", p, rate, v)
		}
		for range 50 {
			c.Observe(rapid.IntRange(-1, 99).Draw(r, "any depth"), float32(rapid.Float64().Draw(r, "any")),
				rapid.Bool().Draw(r, "accepted"))
		}
		for _, odd := range []float32{0, 5, -1e30, float32(math.Inf(-1)), float32(math.NaN()),
			float32(rapid.Float64().Draw(r, "odd"))} {
			c.Observe(depth, odd, true)
			c.Fit()
			if v := c.Chances().Of(depth, odd); !(v >= 0 && v <= 1) {
				r.Fatalf("of exp(%g) it makes %g", odd, v)
			}
		}
	})
}
