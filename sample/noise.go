// The coupled noise: Gumbel variables from a counter-based hash, the same on every machine.

package sample

import (
	"math"
	"math/bits"

	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// golden is 2^64 over the golden ratio, made odd: the step of the SplitMix64 generator.
const golden = 0x9e3779b97f4a7c15

// mix is the output function of SplitMix64 (Stafford's thirteenth variant): a bijection in which
// each input bit flips each output bit with a chance close to one half.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stream is the start of a position's random stream.
func stream(seed uint64, position int) uint64 {
	return mix(mix(seed+golden) + bits.RotateLeft64(mix(uint64(position)+golden), 32))
}

// draw is the token's 64 random bits: number token of the SplitMix64 sequence that starts at key.
func draw(key uint64, token int32) uint64 { return mix(key + (uint64(token)+1)*golden) }

func init() {
	lower.AppendHighNoise = appendHighNoise
	lower.SetLike = func(s, o any) { s.(*Sampler).setLike(o.(*Sampler)) }
}

// Noise is the standard Gumbel variable g = −log(−log u) of a token at an absolute position,
// u one of the 2⁵² midpoints between 0 and 1 that are 2⁻⁵² apart. It lies between −3.61 and 36.74.
func Noise(seed uint64, position int, token int32) float64 {
	return gumbel(draw(stream(seed, position), token))
}

// appendHighNoise appends the tokens of a vocabulary with the highest noise at a position, about n of
// them: so many are expected.
func appendHighNoise(dst []int32, seed uint64, position, vocab, n int) []int32 {
	if n <= 0 {
		return dst
	}
	key, least := stream(seed, position), uint64(0)
	if n < vocab {
		least = uint64((1 - float64(n)/float64(vocab)) * (1 << 64))
	}
	for i := 0; i < vocab; i++ {
		i += simd.FirstHash(key+uint64(i)*golden, vocab-i, least)
		if i < vocab {
			dst = append(dst, int32(i))
		}
	}
	return dst
}

// gumbel grows with h.
func gumbel(h uint64) float64 {
	u := (float64(h>>12) + 0.5) * (1.0 / (1 << 52)) // exact: 53 bits
	return -ln(-ln(u))
}

// ln is the natural logarithm of a positive finite number, within 2 units in the last place. math.Log may
// be assembly, or fused, and differ between machines; here every operation rounds on its own
// (a conversion of a product keeps the compiler from fusing it).
//
// x = 2^k·m with m in [√½, √2); log m = 2·artanh(f) = 2f·(1 + f²/3 + f⁴/5 + …), f = (m−1)/(m+1), |f| < 0.172.
func ln(x float64) float64 {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, k = m+m, k-1
	}
	const (
		ln2Hi = 0x1.62e42feep-1 // 32 bits: its product with k is exact
		ln2Lo = 0x1.a39ef35793c76p-33
	)
	f := (m - 1) / (m + 1)
	s := float64(f * f)
	p := 0.0
	for _, c := range lnSeries {
		p = float64(p*s) + c
	}
	t := float64(float64(2*f) * float64(s*p))
	n := float64(k)
	return float64(n*ln2Hi) + (2*f + (t + float64(n*ln2Lo)))
}

// lnSeries is 1/23, 1/21, …, 1/3: the terms left out are below 2⁻⁶² of the sum.
var lnSeries = [...]float64{1. / 23, 1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9,
	1. / 7, 1. / 5, 1. / 3}
