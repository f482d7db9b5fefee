package model

import (
	"math"
	"testing"
)

// The bounds of gpt-oss-20b's blend, computed by hand with the formula of arXiv 2309.00071: 32 turns and 1
// turn in 4096 positions, 64 dimensions, base 150000. They are rounded outwards unless truncate is false.
func TestYarnBounds(t *testing.T) {
	r := RopeConfig{Base: 15e4, Dims: 64, Scale: 32, Original: 4096, Yarn: &Yarn{Fast: 32, Slow: 1}}
	if low, high := r.blend(); low != 8 || high != 18 {
		t.Errorf("pairs %g to %g, want 8 to 18", low, high)
	}
	r.Yarn.Between = true
	if low, high := r.blend(); math.Abs(low-8.092779) > 1e-6 || math.Abs(high-17.398025) > 1e-6 {
		t.Errorf("pairs %g to %g, want 8.092779 to 17.398025", low, high)
	}
}
