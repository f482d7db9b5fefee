package simd

import (
	"math"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// An infinity or a NaN at any place shows, and so do numbers whose squares overflow; others do not.
func TestFinite(t *testing.T) {
	for _, l := range cpu.Levels() {
		func() {
			defer cpu.Use(l)()
			for n := range 70 {
				x := operand(n)
				if !Finite(x) {
					t.Fatalf("%v: %d finite numbers are not", l, n)
				}
				for i := range x {
					old := x[i]
					for _, bad := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32} {
						x[i] = float32(bad)
						if Finite(x) {
							t.Fatalf("%v: %g at %d of %d does not show", l, bad, i, n)
						}
					}
					x[i] = old
				}
			}
		}()
	}
}
