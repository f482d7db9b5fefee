package tensor

import (
	"encoding/binary"
	"math"

	"github.com/grovellm/grove/internal/kernels/num"
)

// encode32 encodes a block of 32 as Q4_0, Q4_1, Q5_0 or Q5_1, as ggml does without an importance
// matrix. Without a minimum, the element of the largest magnitude becomes the lowest integer
// exactly; with one, the least and the greatest become the lowest and the highest. It returns the
// index of an element that has no encoding, −1 when all have.
func encode32(t Type, src []float32, dst []byte) (bad int) {
	switch t {
	case MXFP4:
		return encodeMXFP4(src, dst)
	case IQ4_NL:
		return encodeIQ4NL(src, dst)
	}
	top := float32(0)
	lo := src[0]
	hi := src[0]
	for i, x := range src {
		if a := abs(x); !(a <= math.MaxFloat32) {
			return i // infinite or not a number
		} else if a > abs(top) {
			top, bad = x, i
		}
		lo, hi = min(lo, x), max(hi, x)
	}
	most := float32(15)
	if t == Q5_0 || t == Q5_1 {
		most = 31
	}
	minimum := t == Q4_1 || t == Q5_1
	d := top / (-(most + 1) / 2)
	less := float32(0)
	add := (most+1)/2 + 0.5
	if minimum {
		d = (hi - lo) / most
		less = lo
		add = 0.5
	}
	h, m := num.ToF16(d), num.ToF16(less)
	if h&0x7fff == 0x7c00 || m&0x7fff == 0x7c00 {
		return bad
	}
	inverse := float32(0)
	if d != 0 {
		inverse = 1 / d
	}
	if isInf(inverse) {
		inverse = 0 // d is a subnormal f32, far below the smallest half
	}
	binary.LittleEndian.PutUint16(dst, h)
	low := dst[2:]
	if minimum {
		binary.LittleEndian.PutUint16(dst[2:], m)
		low = dst[4:]
	}
	var q [32]byte
	high := uint32(0)
	for i, x := range src {
		q[i] = byte(min(float32(float32((x-less)*inverse)+add), most))
		high |= uint32(q[i]>>4) << i
	}
	if most == 31 {
		binary.LittleEndian.PutUint32(low, high)
		low = low[4:]
	}
	for i := range 16 {
		low[i] = q[i]&15 | q[i+16]<<4
	}
	return -1
}
