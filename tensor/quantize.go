package tensor

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/kernels/num"
)

// Quantize encodes src as a type that has a constant here into dst, whose length must be t.Size(len(src)). Other
// types are an error, even without elements.
//
// Types with blocks of 32 get the same bytes as from llama.cpp's quantiser; the K types are about
// as accurate as its own. A finite value out of the type's range is an error, not an infinity; so
// is a value that is not finite in a block type, which cannot represent it.
func Quantize(t Type, src []float32, dst []byte) error {
	size, err := t.Size(len(src))
	if err != nil {
		return err
	}
	if size != len(dst) {
		return fmt.Errorf("%d elements of %v take %d bytes, there is room for %d", len(src), t, size, len(dst))
	}
	switch t {
	case F32:
		for i, x := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
	case F16:
		for i, x := range src {
			h := num.ToF16(x)
			if h&0x7fff == 0x7c00 && !isInf(x) {
				return tooLarge(t, i, x, "BF16 or F32")
			}
			binary.LittleEndian.PutUint16(dst[2*i:], h)
		}
	case BF16:
		for i, x := range src {
			h := num.ToBF16(x)
			if h&0x7fff == 0x7f80 && !isInf(x) {
				return tooLarge(t, i, x, "F32")
			}
			binary.LittleEndian.PutUint16(dst[2*i:], h)
		}
	case Q8_0:
		for b := 0; b < len(src)/32; b++ {
			if i := encodeQ8_0(src[32*b:32*b+32], dst[34*b:34*b+34]); i >= 0 {
				return tooLarge(t, 32*b+i, src[32*b+i], "BF16 or F32")
			}
		}
	case Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4:
		_, bytes := t.Block()
		for b := 0; b < len(src)/32; b++ {
			if i := encode32(t, src[32*b:32*b+32], dst[bytes*b:bytes*b+bytes]); i >= 0 {
				return tooLarge(t, 32*b+i, src[32*b+i], "BF16 or F32")
			}
		}
	case Q4_K, Q5_K, Q6_K:
		_, bytes := t.Block()
		for b := 0; b < len(src)/256; b++ {
			if i := encodeK(t, src[256*b:256*b+256], dst[bytes*b:bytes*b+bytes]); i >= 0 {
				return tooLarge(t, 256*b+i, src[256*b+i], "BF16 or F32")
			}
		}
	default:
		return fmt.Errorf("%v cannot be written: use "+writable, t)
	}
	return nil
}

// writable names, in errors, what Quantize writes.
const writable = "F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q4_K, Q5_1, Q5_0, Q4_1, Q4_0, IQ4_NL or MXFP4"

func encodeK(t Type, src []float32, dst []byte) (bad int) {
	switch t {
	case Q4_K:
		return encodeQ45K(src, dst, 15)
	case Q5_K:
		return encodeQ45K(src, dst, 31)
	}
	return encodeQ6K(src, dst)
}

// encodeQ8_0 encodes a block of 32: d = max|x|/127 in half precision, q = x/d rounded, halves away
// from zero. The division is by the unrounded d, as a multiplication by its rounded inverse, as
// ggml does it. It returns the index of an element that has no encoding, −1 when all have.
func encodeQ8_0(src []float32, dst []byte) (bad int) {
	var top float32
	for i, x := range src {
		a := float32(math.Abs(float64(x)))
		if !(a <= math.MaxFloat32) {
			return i // infinite or not a number
		}
		if a > top {
			top, bad = a, i
		}
	}
	d := top / 127
	h := num.ToF16(d)
	if h == 0x7c00 {
		return bad
	}
	var inverse float32
	if d != 0 {
		inverse = 1 / d
	}
	if isInf(inverse) {
		inverse = 0 // d is a subnormal f32, far below the smallest half: the block is zero
	}
	binary.LittleEndian.PutUint16(dst, h)
	for i, x := range src {
		dst[2+i] = byte(int8(roundAway(float32(x * inverse)))) // which subtracts: not to be fused
	}
	return -1
}

// roundAway rounds to the nearest integer, halves away from zero; |x| is at most 127 and a little.
func roundAway(x float32) int32 {
	n := int32(x)
	f := x - float32(n)            // exact: x and n share the exponent or n is 0
	return n + int32(float32(2*f)) // 2f is -1 or less, or 1 or more, from halves on
}

func isInf(x float32) bool { return math.IsInf(float64(x), 0) }

func tooLarge(t Type, i int, x float32, other string) error {
	return fmt.Errorf("element %d is %v, which %v cannot hold: use %s", i, x, t, other)
}
