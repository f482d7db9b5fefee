// Package num holds the number formats of model files, the one f32 operation Go lacks, a fused multiply-add that
// rounds once on every processor, and what angles need, the same to the bit on every processor.
package num

import "math"

// FMA returns a·b + c rounded once to f32, the same bits as the hardware's VFMADD.
//
// a·b is exact in f64, so the sum in f64 is off by at most one rounding; rounding that
// again to f32 goes wrong only when the f64 sum sits on a tie between two f32 values
// or the result is subnormal. Those cases are settled with the exact error of the sum.
func FMA(a, b, c float32) float32 {
	p, d := float64(a)*float64(b), float64(c)
	s := p + d
	if u := math.Float64bits(s); u&(1<<29-1) != 1<<28 && (u>>52&0x7ff) > 1023-126 {
		return float32(s)
	}
	return fmaSlow(p, d, s)
}

// fmaSlow rounds p+d to odd in f64 (s is p+d rounded to nearest), which f32 rounding then gets right.
func fmaSlow(p, d, s float64) float32 {
	if s == 0 || math.IsInf(s, 0) || math.IsNaN(s) {
		return float32(s)
	}
	t := s - p
	e := (p - (s - t)) + (d - t) // the exact error of the sum (Knuth, TwoSum)
	if u := math.Float64bits(s); e != 0 && u&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(u + 1)
		} else {
			s = math.Float64frombits(u - 1)
		}
	}
	return float32(s)
}

// BF16 widens a bfloat16 (exact).
func BF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToBF16 rounds to bfloat16, ties to even; NaN stays NaN.
func ToBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if u&0x7fffffff > 0x7f800000 {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// F16 widens an IEEE half (exact).
func F16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, man := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch {
	case exp == 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	case exp != 0:
		return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
	}
	f := float32(man) * (1.0 / (1 << 24)) // zero and subnormals
	return math.Float32frombits(sign | math.Float32bits(f))
}

// ToF16 rounds to IEEE half, ties to even; overflow gives infinity, NaN stays NaN.
func ToF16(f float32) uint16 {
	u := math.Float32bits(f)
	sign, u := uint16(u>>16&0x8000), u&0x7fffffff
	switch {
	case u > 0x7f800000:
		return sign | 0x7e00
	case u >= 0x47800000: // 2^16 and above
		return sign | 0x7c00
	case u >= 0x38800000: // normal halves
		u -= 112 << 23
		return sign | uint16((u+0xfff+u>>13&1)>>13)
	}
	// Subnormal halves: adding 0.5 puts the f32 rounding point at the half's last bit.
	return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)-0x3f000000)
}

// Q3Scale returns the scale of the j-th 16 elements of a block of Q3_K. Its 12 bytes of scales hold the low four bits
// of 16 scales, then their upper two.
func Q3Scale(scales []byte, j int) int {
	return int(scales[j%8]>>(j/8*4)&15|scales[8+j%4]>>(j/4*2)&3<<4) - 32
}
