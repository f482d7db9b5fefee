package nn

import (
	"math"
	"testing"
)

// The activation equals its definition in f64, up to rounding.
func TestXIELU(t *testing.T) {
	a := NewXIELU(0.4, -0.9, 0.5, -1e-6)
	p, n := math.Log1p(math.Exp(0.4)), 0.5+math.Log1p(math.Exp(-0.9))
	for x := float32(-30); x < 30; x += 0.00917 {
		v := float64(x)
		want := p*v*v + 0.5*v
		if v <= 0 {
			want = n*(math.Expm1(min(v, -1e-6))-v) + 0.5*v
		}
		var got [1]float32
		a.apply(got[:], []float32{x})
		if d := math.Abs(float64(got[0]) - want); d > 1e-6*(1+math.Abs(want)) {
			t.Errorf("of %g it is %g, want %g", x, got[0], want)
		}
	}
}
