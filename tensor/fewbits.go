package tensor

import (
	"encoding/binary"
	"math"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/kernels/num"
)

// MXFP4: a byte of exponent, nibbles as Q4_0. x = 2^(e−128)·v[q]
func decodeMXFP4(src []byte, dst []float32) {
	d := num.ScaleMXFP4(src[0])
	for i, q := range src[1:17] {
		dst[i] = d * float32(num.MXFP4[q&15])
		dst[i+16] = d * float32(num.MXFP4[q>>4])
	}
}

// encodeMXFP4 encodes a block of 32 as ggml does: the exponent is that of the largest magnitude less
// 2, and an element becomes the nearest of the integers, of two the first.
func encodeMXFP4(src []float32, dst []byte) (bad int) {
	top := float32(0)
	for i, x := range src {
		if !(abs(x) <= math.MaxFloat32) {
			return i
		}
		top = max(top, abs(x))
	}
	dst[0] = 0
	if top > 0 {
		_, exp := math.Frexp(float64(top)) // top is within [2^(exp−1), 2^exp)
		dst[0] = byte(max(exp-1-2+127, 0))
	}
	d := num.ScaleMXFP4(dst[0])
	var values [8]float32 // the others are their negatives
	for i := range values {
		values[i] = float32(d * float32(num.MXFP4[i]))
	}
	nearest := func(x float32) byte {
		size, best := abs(x), byte(0)
		off := size
		for i, v := range values {
			if o := abs(v - size); o < off {
				best, off = byte(i), o
			}
		}
		if x < 0 && best > 0 {
			best += 8
		}
		return best
	}
	for i := range 16 {
		dst[1+i] = nearest(src[i]) | nearest(src[i+16])<<4
	}
	return -1
}

// IQ4_NL: d (half), nibbles as Q4_0. x = d·v[q]
func decodeIQ4NL(src []byte, dst []float32) { decodeIQ4(half(src), src[2:18], dst) }

func decodeIQ4(d float32, qs []byte, dst []float32) {
	for i, q := range qs {
		dst[i] = d * float32(num.IQ4[q&15])
		dst[i+16] = d * float32(num.IQ4[q>>4])
	}
}

// encodeIQ4NL encodes a block of 32. The element of the largest magnitude becomes each of the integers in turn,
// the others the nearest, and d is what fits the block best. Elements weigh their squares, as in ggml. A block
// that has been decoded gets its numbers back.
func encodeIQ4NL(src []float32, dst []byte) (bad int) {
	top := float32(0)
	for i, x := range src {
		if !(abs(x) <= math.MaxFloat32) {
			return i
		}
		if abs(x) > abs(top) {
			top, bad = x, i
		}
	}
	best, d := 0.0, float32(0)
	for _, v := range num.IQ4 {
		if top == 0 {
			break
		}
		inverse := float64(v) / float64(top)
		if math.IsInf(inverse, 0) {
			continue
		}
		qx, qq := 0.0, 0.0
		for _, x := range src {
			q, w := float64(num.IQ4[nearestIQ4(float64(x)*inverse)]), float64(x)*float64(x)
			qx, qq = qx+w*q*float64(x), qq+w*q*q
		}
		if qx*qx > best*qq { // what a fit takes off the sum of squared errors, by weight
			best, d = qx*qx/qq, float32(qx/qq)
		}
	}
	h := num.ToF16(d)
	if h&0x7fff == 0x7c00 {
		return bad
	}
	binary.LittleEndian.PutUint16(dst, h)
	inverse := 0.0
	if d != 0 {
		inverse = 1 / float64(d)
	}
	for i := range 16 {
		dst[2+i] = nearestIQ4(float64(src[i])*inverse) | nearestIQ4(float64(src[i+16])*inverse)<<4
	}
	return -1
}

// iq4Codes are the numbers of the integers nearest to x, by the integer part of 2x + 256: twice a middle between
// two neighbours is an integer.
var iq4Codes = func() (codes [512]byte) {
	for i := range codes {
		n := 0
		for n < len(num.IQ4)-1 && i-256 >= int(num.IQ4[n])+int(num.IQ4[n+1]) {
			n++
		}
		codes[i] = byte(n)
	}
	return codes
}()

// nearestIQ4 is the number of the integer nearest to x.
func nearestIQ4(x float64) byte {
	return iq4Codes[int(min(max(2*x+256, 0), 511))]
}

// IQ4_XS: d (half), 8 scales of 6 bits, their high bits first, nibbles of 32 elements each as Q4_0.
// x = d·(s−32)·v[q]
func decodeIQ4XS(src []byte, dst []float32) {
	for b := range 8 {
		decodeIQ4(half(src)*float32(numtype.IQ4Scale(src, b)), src[8+16*b:][:16], dst[32*b:])
	}
}

// Q3_K: 256 third bits, 256 times two bits, 16 scales of 6 bits, d (half). x = d·(s−32)·(q−4)
func decodeQ3K(src []byte, dst []float32) {
	d := half(src[108:])
	for e := range dst {
		q := int(src[32+e/128*32+e%32]>>(e/32%4*2)&3|src[e%32]>>(e/32)&1<<2) - 4
		dst[e] = d * float32(num.Q3Scale(src[96:108], e/16)) * float32(q)
	}
}

// Q2_K: 16 scales and minimums of 4 bits, 256 times two bits, d and dmin (halves).
// x = d·s·q − dmin·m
func decodeQ2K(src []byte, dst []float32) {
	d, least := half(src[80:]), half(src[82:])
	for e := range dst {
		s, q := src[e/16], src[16+e/128*32+e%32]>>(e/32%4*2)&3
		dst[e] = float32(d*float32(s&15)*float32(q)) - float32(least*float32(s>>4))
	}
}
