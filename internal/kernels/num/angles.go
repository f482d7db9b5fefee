package num

import (
	"math"
	"math/big"
)

// What package math computes may differ in its last bit from processor to processor: some functions are assembly
// on some, and compilers for some fuse products with sums. What follows is the same everywhere.

// Sincos is the sine and cosine of x, 0 ≤ x < 2^27, within about 2^-52.
func Sincos(x float64) (sin, cos float64) {
	// π/2 is p1 + p2, to within 2^-107. x − k·p1 is a multiple of 2^-53 and below 1, so it is exact.
	const (
		p1 = 0x1.921fb54442d18p+0
		p2 = 0x1.1a62633145c07p-54
	)
	k := math.RoundToEven(float64(x * (2 / math.Pi)))
	r := math.FMA(-k, p2, math.FMA(-k, p1, x))
	z := float64(r * r)
	s, c := 0.0, 0.0
	for i := range sinSeries {
		s, c = math.FMA(s, z, sinSeries[i]), math.FMA(c, z, cosSeries[i])
	}
	sin, cos = math.FMA(float64(s*z), r, r), math.FMA(c, z, 1)
	switch int64(k) & 3 {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	}
	return sin, cos
}

// The terms of sin r / r and of cos r beyond the first, in powers of r², the highest first; those
// left out are below 2^-55 for |r| ≤ π/4.
var (
	sinSeries = [...]float64{1. / 355687428096000, -1. / 1307674368000, 1. / 6227020800, -1. / 39916800, 1. / 362880,
		-1. / 5040, 1. / 120, -1. / 6}
	cosSeries = [...]float64{1. / 20922789888000, -1. / 87178291200, 1. / 479001600, -1. / 3628800, 1. / 40320,
		-1. / 720, 1. / 24, -1. / 2}
)

// InversePowers is base^(−i/n) for i from 0 to n−1, each rounded once; base is positive and finite.
func InversePowers(base float64, n int) []float64 {
	f := make([]float64, n)
	if n == 0 {
		return f
	}
	f[0] = 1
	if n == 1 {
		return f
	}
	const precision = 200
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	// Newton's method on base·r^n = 1, each step of which doubles the digits.
	b := number(base)
	one := number(1)
	r := number(math.Pow(base, -1/float64(n)))
	for range 4 {
		e := power(r, n)
		e.Sub(one, e.Mul(e, b))
		r.Add(r, e.Mul(e, r).Quo(e, number(float64(n))))
	}
	p := number(1)
	for i := range f[1:] {
		f[i+1], _ = p.Mul(p, r).Float64()
	}
	return f
}

// power is x^n, n ≥ 1.
func power(x *big.Float, n int) *big.Float {
	p, s := new(big.Float).SetPrec(x.Prec()).SetInt64(1), new(big.Float).Set(x)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p.Mul(p, s)
		}
		s.Mul(s, s)
	}
	return p
}
