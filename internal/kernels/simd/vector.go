package simd

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/num"
)

// Add computes dst += x.
func Add(dst, x []float32) { add(dst, x[:len(dst)]) }

// Scale computes dst *= a.
func Scale(dst []float32, a float32) { scale(dst, a) }

// Axpy computes dst = FMA(a, x, dst).
func Axpy(dst []float32, a float32, x []float32) { axpy(dst, a, x[:len(dst)]) }

// Finite reports whether the squares of x add up to a finite number. If they do, every element of x is finite.
func Finite(x []float32) bool { return sumSquares(x, 0) <= math.MaxFloat32 }

// RMSNorm computes dst = x / sqrt(mean(x²) + eps) · w.
func RMSNorm(dst, x, w []float32, eps float32) {
	x, w = x[:len(dst)], w[:len(dst)]
	inv := 1 / sqrt(sumSquares(x, 0)/float32(len(x))+eps)
	normScale(dst, x, w, 0, inv)
}

// Moments returns the mean of x and its variance.
func Moments(x []float32) (mean, variance float32) {
	n := float32(len(x))
	mean = sum(x) / n
	return mean, sumSquares(x, mean) / n
}

// LayerNorm computes dst = (x - mean(x)) / sqrt(variance(x) + eps) · w + b. b may be nil.
func LayerNorm(dst, x, w, b []float32, eps float32) {
	x, w = x[:len(dst)], w[:len(dst)]
	mean, variance := Moments(x)
	inv := 1 / sqrt(variance+eps)
	if b == nil {
		normScale(dst, x, w, mean, inv)
	} else {
		normShift(dst, x, w, b[:len(dst)], mean, inv)
	}
}

// RopeHalf rotates the pairs (i, i+len(cos)) of x by the angles with the given cosines and sines;
// the rest of x is unchanged. It is the layout of Hugging Face files ("NEOX").
func RopeHalf(x, cos, sin []float32) {
	h := len(cos)
	ropeHalf(x[:h], x[h:2*h], cos, sin[:h])
}

// RopePairs rotates the pairs (2i, 2i+1) of x, the layout of llama GGUF files.
func RopePairs(x, cos, sin []float32) {
	h := len(cos)
	x, sin = x[:2*h], sin[:h]
	n := h &^ 7 // the kernels rotate whole vectors
	ropePairs(x[:2*n], cos[:n], sin[:n])
	ropePairsGeneric(x[2*n:], cos[n:], sin[n:])
}

// sqrt is correctly rounded: the f64 root has more than twice the bits.
func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func addGeneric(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}

func scaleGeneric(dst []float32, a float32) {
	for i := range dst {
		dst[i] *= a
	}
}

func axpyGeneric(dst []float32, a float32, x []float32) {
	for i, v := range x {
		dst[i] = num.FMA(a, v, dst[i])
	}
}

func sumGeneric(x []float32) float32 {
	var l [lanes]float32
	for i, v := range x {
		l[i%lanes] += v
	}
	return fold(&l)
}

// sumSquares returns Σ (x - mean)².
func sumSquaresGeneric(x []float32, mean float32) float32 {
	var l [lanes]float32
	for i, v := range x {
		d := v - mean
		l[i%lanes] = num.FMA(d, d, l[i%lanes])
	}
	return fold(&l)
}

func normScaleGeneric(dst, x, w []float32, mean, inv float32) {
	for i, v := range x {
		dst[i] = float32((v-mean)*inv) * w[i]
	}
}

func normShiftGeneric(dst, x, w, b []float32, mean, inv float32) {
	for i, v := range x {
		dst[i] = num.FMA((v-mean)*inv, w[i], b[i])
	}
}

func ropeHalfGeneric(x, y, cos, sin []float32) {
	for i, c := range cos {
		x[i], y[i] = rotate(x[i], y[i], c, sin[i])
	}
}

func ropePairsGeneric(x, cos, sin []float32) {
	for i, c := range cos {
		x[2*i], x[2*i+1] = rotate(x[2*i], x[2*i+1], c, sin[i])
	}
}

// rotate fuses the product with the cosine, and rounds the one with the sine separately.
func rotate(x, y, c, s float32) (float32, float32) {
	return num.FMA(x, c, -float32(y*s)), num.FMA(y, c, float32(x*s))
}
