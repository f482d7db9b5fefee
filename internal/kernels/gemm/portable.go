package gemm

import (
	"encoding/binary"
	"math"

	"github.com/grovellm/grove/internal/kernels/num"
)

// mulPortable is the product of rows [r0, r1) in plain Go, and the definition that the assembly is
// tested against. Results are stored shift panels after their own; those of row base come first.
func mulPortable(m *Matrix, dst []float32, stride, shift int, x *Input, r0, r1, base, p0, p1 int) {
	for p := p0; p < p1; p++ {
		w := m.data[p*m.panel:][:m.panel]
		for r := r0; r < r1; r++ {
			var acc [Panel]float32
			row := x.buf[r*x.stride:][:x.stride]
			switch m.t {
			case F32:
				rowF32(&acc, w, row)
			case F16:
				rowF16(&acc, w, row)
			case BF16:
				rowBF16(&acc, w, row, x.pairs)
			case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
				kTypes[m.t].row(&acc, w, row)
			case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4:
				blockTypes[m.t].row(&acc, w, row)
			default:
				rowCoded(m.t, &acc, w, row)
			}
			copy(dst[(r-base)*stride+(p+shift)*Panel:][:min(Panel, m.out-p*Panel)], acc[:])
		}
	}
}

func rowF32(acc *[Panel]float32, w, x []byte) {
	for ; len(w) > 0; w, x = w[Panel*4:], x[4:] {
		xv := native(x)
		for o := range acc {
			acc[o] = num.FMA(f32(w[o*4:]), xv, acc[o])
		}
	}
}

func rowF16(acc *[Panel]float32, w, x []byte) {
	for ; len(w) > 0; w, x = w[Panel*2:], x[4:] {
		xv := native(x)
		for o := range acc {
			acc[o] = num.FMA(num.F16(binary.LittleEndian.Uint16(w[o*2:])), xv, acc[o])
		}
	}
}

func rowBF16(acc *[Panel]float32, w, x []byte, pairs bool) {
	for ; len(w) > 0; w = w[Panel*4:] {
		var x0, x1 float32
		if pairs {
			x0, x1 = num.BF16(binary.NativeEndian.Uint16(x)), num.BF16(binary.NativeEndian.Uint16(x[2:]))
			x = x[4:]
		} else {
			x0, x1 = native(x), native(x[4:])
			x = x[8:]
		}
		for o := range acc {
			u := binary.LittleEndian.Uint32(w[o*4:])
			acc[o] = fmaFlush(math.Float32frombits(u&0xffff0000), x1, acc[o])
			acc[o] = fmaFlush(math.Float32frombits(u<<16), x0, acc[o])
		}
	}
}

// f32 reads a weight, native an activation.
func f32(b []byte) float32    { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
func native(b []byte) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b)) }

// fmaFlush is num.FMA with the behaviour of VDPBF16PS: a subnormal operand counts as zero, and a
// result that is subnormal after rounding (to 24 bits, with an unlimited exponent) becomes zero. a
// and b must be bf16 values.
func fmaFlush(a, b, c float32) float32 {
	a = flush(a)
	b = flush(b)
	c = flush(c)
	p, d := float64(a)*float64(b), float64(c) // p is exact
	s := p + d
	if !(math.Abs(s) < 0x1p-125) { // including NaN
		return num.FMA(a, b, c)
	}
	// 2^-126·(1 − 2^-25) is the smallest value that rounds to a normal one. If s is that value
	// because it was rounded away from zero, the exact sum is below it.
	const least = 0x1p-126 - 0x1p-151
	if m := math.Abs(s); m > least {
		return num.FMA(a, b, c)
	} else if m == least {
		t := s - p
		if e := (p - (s - t)) + (d - t); e == 0 || (e > 0) == (s > 0) {
			return num.FMA(a, b, c)
		}
	}
	return float32(math.Copysign(0, s))
}

// flush turns a subnormal into a zero of its sign.
func flush(f float32) float32 {
	if u := math.Float32bits(f); u&0x7f800000 == 0 {
		return math.Float32frombits(u & 0x80000000)
	}
	return f
}
