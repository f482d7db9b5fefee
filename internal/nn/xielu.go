package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// XIELU is an activation (arXiv 2411.13010): P·x² + Beta·x for positive x, else N·(e^min(x, Eps) − 1 − x) + Beta·x.
type XIELU struct{ P, N, Beta, Eps float32 }

// NewXIELU returns the activation for the numbers in a file, from which P and N follow.
func NewXIELU(alphaP, alphaN, beta, eps float32) *XIELU {
	softplus := func(x float32) float64 { return math.Log1p(math.Exp(float64(x))) }
	return &XIELU{P: float32(softplus(alphaP)), N: float32(float64(beta) + softplus(alphaN)), Beta: beta, Eps: eps}
}

// apply writes the activations of x to dst.
func (a *XIELU) apply(dst, x []float32) {
	var buf [256]float32
	for len(x) > 0 {
		n := min(len(x), len(buf))
		e := buf[:n]
		for i, v := range x[:n] {
			e[i] = min(v, a.Eps)
		}
		simd.Exp(e, e)
		for i, v := range x[:n] {
			if v > 0 {
				dst[i] = float32(float32(a.P*v)*v) + float32(a.Beta*v)
				continue
			}
			y := min(v, a.Eps)
			rest := e[i] - 1 - y // of e^y, beyond 1 + y
			if y > -0.5 {
				rest = beyondLinear(y)
			}
			dst[i] = float32(a.N*(rest+(y-v))) + float32(a.Beta*v)
		}
		dst = dst[n:]
		x = x[n:]
	}
}

// beyondLinear returns e^x − 1 − x for small x, where the difference would lose most of its digits.
func beyondLinear(x float32) float32 {
	sum := float32(1.0 / 362880)
	for _, c := range [...]float32{1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2} {
		sum = float32(sum*x) + c
	}
	return float32(float32(x*x) * sum)
}
