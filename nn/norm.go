package nn

import "github.com/grovellm/grove/internal/simd"

// Norm is a normalisation with weights: RMSNorm, or LayerNorm when Center is set.
type Norm struct {
	Weight, Bias []float32 // Bias belongs to LayerNorm, nil without
	Eps          float32
	Center       bool
}

// apply writes the normalised x to dst.
func (n *Norm) apply(dst, x []float32) {
	if n.Center {
		simd.LayerNorm(dst, x, n.Weight, n.Bias, n.Eps)
		return
	}
	simd.RMSNorm(dst, x, n.Weight, n.Eps)
}
