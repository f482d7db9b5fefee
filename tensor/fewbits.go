package tensor

import (
	"encoding/binary"
	"math"
)

// The integers of MXFP4, twice the numbers of OCP's E2M1, and those of IQ4_NL and IQ4_XS.
var (
	mxfp4Values = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
	iq4Values   = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
)

// scaleMXFP4 is 2^(e−128), half of what OCP's E8M0 says, since the integers are doubled.
func scaleMXFP4(e byte) float32 { return float32(math.Ldexp(1, int(e)-128)) }

// MXFP4: a byte of exponent, nibbles as Q4_0. x = 2^(e−128)·v[q]
func decodeMXFP4(src []byte, dst []float32) {
	d := scaleMXFP4(src[0])
	for i, q := range src[1:17] {
		dst[i] = d * float32(mxfp4Values[q&15])
		dst[i+16] = d * float32(mxfp4Values[q>>4])
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
	d := scaleMXFP4(dst[0])
	nearest := func(x float32) byte {
		best := 0
		for i, v := range mxfp4Values {
			if abs(float32(d*float32(v))-x) < abs(float32(d*float32(mxfp4Values[best]))-x) {
				best = i
			}
		}
		return byte(best)
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
		dst[i] = d * float32(iq4Values[q&15])
		dst[i+16] = d * float32(iq4Values[q>>4])
	}
}

// IQ4_XS: d (half), 8 scales of 6 bits, their high bits first, nibbles of 32 elements each as Q4_0.
// x = d·(s−32)·v[q]
func decodeIQ4XS(src []byte, dst []float32) {
	for b := range 8 {
		decodeIQ4(half(src)*float32(iq4Scale(src, b)), src[8+16*b:][:16], dst[32*b:])
	}
}

func iq4Scale(src []byte, b int) int {
	return int(src[4+b/2]>>(4*(b%2))&15|byte(binary.LittleEndian.Uint16(src[2:])>>(2*b)&3)<<4) - 32
}

// Q3_K: 256 third bits, 256 times two bits, 16 scales of 6 bits, d (half). x = d·(s−32)·(q−4)
func decodeQ3K(src []byte, dst []float32) {
	d := half(src[108:])
	for e := range dst {
		dst[e] = d * float32(q3Scale(src, e/16)) * float32(q3Element(src, e))
	}
}

func q3Element(src []byte, e int) int {
	return int(src[32+e/128*32+e%32]>>(e/32%4*2)&3|src[e%32]>>(e/32)&1<<2) - 4
}

func q3Scale(src []byte, b int) int {
	s := src[96:108]
	return int(s[b%8]>>(b/8*4)&15|s[8+b%4]>>(b/4*2)&3<<4) - 32
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
