package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/kernels/codebook"
	"github.com/grovellm/grove/internal/kernels/num"
)

// Dequantize decodes src into dst. The lengths must fit: len(src) = t.Size(len(dst)).
//
// The result is exactly what the encoding says, rounded once: scale·q is exact in f32 for every type here
// (a half's 11 bits times at most 12 bits of sub-scale and quantum), so that only the types with
// a minimum round, at the addition, and fusing it or not makes no difference.
func Dequantize(t Type, src []byte, dst []float32) error {
	size, err := t.Size(len(dst))
	if err != nil {
		return err
	}
	if !t.Decodes() {
		return fmt.Errorf("%v cannot be read as numbers: convert the file to a type that grove reads (%s)", t, decodable)
	}
	if size != len(src) {
		return fmt.Errorf("%d elements of %v take %d bytes, there are %d", len(dst), t, size, len(src))
	}
	switch t {
	case F32:
		decodeF32(src, dst)
	case F16:
		for i := range dst {
			dst[i] = num.F16(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = num.BF16(binary.LittleEndian.Uint16(src[2*i:]))
		}
	default:
		n, b := t.Block()
		decode := blockDecoder[t]
		if c, ok := t.code(); ok {
			decode = func(src []byte, dst []float32) { c.Decode(dst, src) }
		}
		for ; len(dst) > 0; src, dst = src[b:], dst[n:] {
			decode(src[:b:b], dst[:n:n])
		}
	}
	return nil
}

// littleEndian says that memory holds numbers the way files do.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

func decodeF32(src []byte, dst []float32) {
	if littleEndian && len(dst) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), src) // src may lie at any address
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// blockDecoder decodes one block. The layouts are ggml's, in the order of their bytes.
var blockDecoder = map[Type]func(src []byte, dst []float32){
	Q4_0: decodeQ4_0,
	Q4_1: decodeQ4_1,
	Q5_0: decodeQ5_0,
	Q5_1: decodeQ5_1,
	Q8_0: decodeQ8_0,
	Q4_K: decodeQ4K,
	Q5_K: decodeQ5K,
	Q6_K: decodeQ6K,

	MXFP4: decodeMXFP4, IQ4_NL: decodeIQ4NL, numtype.IQ4_XS: decodeIQ4XS, numtype.Q3_K: decodeQ3K, numtype.Q2_K: decodeQ2K,
}

// code is the type in package codebook, which decodes it.
func (t Type) code() (c codebook.Type, ok bool) { return codebook.Named(t.String()) }

func half(b []byte) float32 { return num.F16(binary.LittleEndian.Uint16(b)) }

// Q4_0: scale d (half), 16 bytes of nibbles; low nibbles are elements 0–15, high ones 16–31. x = d·(q−8)
func decodeQ4_0(src []byte, dst []float32) {
	d, qs := half(src), src[2:18]
	for i, q := range qs {
		dst[i] = d * float32(int(q&15)-8)
		dst[i+16] = d * float32(int(q>>4)-8)
	}
}

// Q4_1: d, m (halves), nibbles as Q4_0. x = d·q + m
func decodeQ4_1(src []byte, dst []float32) {
	d := half(src)
	m := half(src[2:])
	qs := src[4:20]
	for i, q := range qs {
		dst[i] = float32(d*float32(q&15)) + m
		dst[i+16] = float32(d*float32(q>>4)) + m
	}
}

// Q5_0: d (half), 32 fifth bits, nibbles as Q4_0. x = d·(q−16)
func decodeQ5_0(src []byte, dst []float32) {
	d := half(src)
	high := binary.LittleEndian.Uint32(src[2:])
	qs := src[6:22]
	for i, q := range qs {
		dst[i] = d * float32(int(uint32(q&15)|high>>i&1<<4)-16)
		dst[i+16] = d * float32(int(uint32(q>>4)|high>>(i+16)&1<<4)-16)
	}
}

// Q5_1: d, m (halves), 32 fifth bits, nibbles as Q4_0. x = d·q + m
func decodeQ5_1(src []byte, dst []float32) {
	d := half(src)
	m := half(src[2:])
	high := binary.LittleEndian.Uint32(src[4:])
	qs := src[8:24]
	for i, q := range qs {
		dst[i] = float32(d*float32(uint32(q&15)|high>>i&1<<4)) + m
		dst[i+16] = float32(d*float32(uint32(q>>4)|high>>(i+16)&1<<4)) + m
	}
}

// Q8_0: d (half), 32 signed bytes. x = d·q
func decodeQ8_0(src []byte, dst []float32) {
	d, qs := half(src), src[2:34]
	for i, q := range qs {
		dst[i] = d * float32(int8(q))
	}
}
