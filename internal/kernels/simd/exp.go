package simd

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/num"
)

// exp(x) = 2^n · e^r with n = round(x/ln 2) and |r| <= ln(2)/2. Adding expMagic leaves n in the low
// bits of the sum; two fused steps subtract n·ln 2 from x, the first without error; a polynomial of
// degree 6, with minimax coefficients for the relative error (3e-9), gives e^r; n is then added to
// the exponent bits. The result is within 1 ulp, exp(0) is exactly 1, and results below the
// smallest normal number are 0, so no later step has subnormal operands.
const (
	expLo    = -0x1.5d589ep6 // exp of anything smaller is below 2^-126
	expHi    = 0x1.62e42ep6  // exp of anything larger exceeds the largest f32
	log2e    = 0x1.715476p0
	ln2Hi    = 0x1.62e430p-1
	ln2Lo    = -0x1.05c610p-29
	expMagic = 0x1.8p23

	exp2 = 0x1.fffffcp-2
	exp3 = 0x1.555492p-3
	exp4 = 0x1.5558f2p-5
	exp5 = 0x1.1239e2p-7
	exp6 = 0x1.6a2434p-10
)

// The tail of the normal distribution: P(X > a) = e^(-a²/2) · g(u) with u = (a-3)/(a+3), where g is
// a minimax polynomial on 0 <= a <= 13.3; beyond that, e^(-a²/2) is 0 here.
const (
	tailMax = 14
	tailMid = 3

	tail0 = 0x1.f1b89cp-4
	tail1 = -0x1.a6b66ap-3
	tail2 = 0x1.f8baccp-4
	tail3 = -0x1.7a9458p-5
	tail4 = 0x1.91e0f6p-8
	tail5 = 0x1.7cb9a6p-9
	tail6 = -0x1.01ff64p-10
	tail7 = -0x1.646c40p-12
	tail8 = 0x1.e6b230p-14
	tail9 = 0x1.c64012p-15
)

var (
	inf    = float32(math.Inf(1))
	negInf = float32(math.Inf(-1))
)

// Exp computes dst = e^x.
func Exp(dst, x []float32) { exp(dst, x[:len(dst)]) }

// Softmax turns x into weights that add up to 1: exp(scale·x - max) times the reciprocal of their
// sum. An entry of -Inf gets weight exactly 0. If all are -Inf, all weights are 0. A NaN, or +Inf,
// makes all of them NaN.
//
// It returns the largest scale·x and the sum by which it divided: for parts of a longer x, these
// determine the relative weights of the parts. If all entries are -Inf, they are 0 and 0.
func Softmax(x []float32, scaleBy float32) (top, sum float32) {
	m := maxScaled(x, scaleBy)
	if m == negInf {
		m = 0
	}
	s := expSum(x, scaleBy, m)
	by := s
	if s != 0 {
		by = 1 / s
	}
	scale(x, by)
	return m, s
}

// LogSumExp returns log Σ e^x; if x is empty or all -Inf, it returns -Inf.
func LogSumExp(x []float32) float32 {
	m := maxScaled(x, 1)
	switch m {
	case inf:
		return inf
	case negInf:
		// Either there is no finite entry and the sum is 0, or there are NaNs, which the sum reveals.
		if s := sumExp(x, 0); s != s {
			return s
		}
		return negInf
	}
	return m + logf(sumExp(x, m))
}

// sumBlock is how many terms are added in single precision, 256 in each lane. With more, many small
// terms would be lost next to a large one.
const sumBlock = 4096

// SumExp returns Σ e^(x - most), where most is the largest of x, a finite number. The relative error is at most 2⁻¹⁶.
func SumExp(x []float32, most float32) (sum float64) {
	for block := range slices.Chunk(x, sumBlock) {
		sum += float64(sumExp(block, most))
	}
	return sum
}

// ScaledSumExp returns Σ e^(scale·x - most) as exactly, where most is the largest scale·x. It leaves the terms in x.
func ScaledSumExp(x []float32, scale, most float32) (sum float64) {
	for block := range slices.Chunk(x, sumBlock) {
		sum += float64(expSum(block, scale, most))
	}
	return sum
}

// SiLUMul computes dst = gate / (1 + e^-gate) · up.
func SiLUMul(dst, gate, up []float32) { siluMul(dst, gate[:len(dst)], up[:len(dst)]) }

// GELUMul computes dst = gelu(gate) · up with the approximation gelu(g) = ½·g·(1 + tanh(√(2/π)·(g + 0.044715·g³)))
// (arXiv 1606.08415, §2), which is g / (1 + e^(c1·g + c3·g³)).
func GELUMul(dst, gate, up []float32) {
	const (
		c1 = -2 * 0.7978845608028654
		c3 = c1 * 0.044715
	)
	geluMul(dst, gate[:len(dst)], up[:len(dst)], c1, c3)
}

// GELU computes dst = x · P(X <= x) for a standard normal X, the exact ("erf") form.
func GELU(dst, x []float32) { gelu(dst, x[:len(dst)]) }

// Log returns the natural logarithm of a positive number.
func Log(x float32) float32 { return logf(x) }

func expGeneric(dst, x []float32) {
	for i, v := range x {
		dst[i] = exp1(v)
	}
}

// expSum returns Σ exp(scale·x - m); it leaves the exponentials in x.
func expSumGeneric(x []float32, scale, m float32) float32 {
	var l [lanes]float32
	for i, v := range x {
		x[i] = exp1(float32(v*scale) - m)
		l[i%lanes] += x[i]
	}
	return fold(&l)
}

// sumExp returns Σ exp(x - m).
func sumExpGeneric(x []float32, m float32) float32 {
	var l [lanes]float32
	for i, v := range x {
		l[i%lanes] += exp1(v - m)
	}
	return fold(&l)
}

func siluMulGeneric(dst, gate, up []float32) {
	for i, g := range gate {
		dst[i] = float32(g/(1+exp1(-g))) * up[i]
	}
}

func geluMulGeneric(dst, gate, up []float32, c1, c3 float32) {
	for i, g := range gate {
		dst[i] = float32(g/(1+exp1(float32(g*(c1+float32(c3*float32(g*g))))))) * up[i]
	}
}

func geluGeneric(dst, x []float32) {
	for i, v := range x {
		a := math.Float32frombits(math.Float32bits(v) &^ (1 << 31))
		if a > tailMax {
			a = tailMax
		}
		h := -0.5 * a
		y := h * a
		e := expReduced(y, num.FMA(h, a, -y)) // -a²/2 in two parts
		if y < expLo {
			e = 0
		}
		u := (a - tailMid) / (a + tailMid)
		t := float32(tail9)
		for _, c := range [...]float32{tail8, tail7, tail6, tail5, tail4, tail3, tail2, tail1, tail0} {
			t = num.FMA(t, u, c)
		}
		t = float32(t * e) // must not be fused with the subtraction
		if !math.Signbit(float64(v)) {
			t = 1 - t
		}
		dst[i] = v * t
	}
}

func exp1(x float32) float32 {
	if x < expLo {
		return 0
	}
	if !(x <= expHi) {
		return x * inf // Inf, or NaN
	}
	return expReduced(x, 0)
}

// expReduced returns exp(x + low) for x in [expLo, expHi] and a low below x's last bit. For a NaN
// it returns a NaN or garbage; the caller must handle that.
func expReduced(x, low float32) float32 {
	t := num.FMA(x, log2e, expMagic)
	n := t - expMagic
	r := num.FMA(n, -ln2Hi, x)
	r = num.FMA(n, -ln2Lo, r) + low
	p := num.FMA(exp6, r, exp5)
	p = num.FMA(p, r, exp4)
	p = num.FMA(p, r, exp3)
	p = num.FMA(p, r, exp2)
	p = num.FMA(p, r, 1)
	p = num.FMA(p, r, 1)
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(t)<<23)
}

// logf returns the logarithm of a positive f32, in f64 without fused steps, so that it is the same
// on every processor: x = 2^k · m with m near 1, log m = 2·atanh((m-1)/(m+1)).
func logf(x float32) float32 {
	m, k := math.Frexp(float64(x))
	if m < math.Sqrt2/2 {
		m *= 2
		k--
	}
	f := (m - 1) / (m + 1)
	f2, s := float64(f*f), 0.0
	for i := 21; i >= 1; i -= 2 { // |f| < 0.172: the next term is below 1e-17
		s = float64(s*f2) + 1/float64(i)
	}
	return float32(float64(2*f*s) + float64(float64(k)*math.Ln2))
}
