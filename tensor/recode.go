package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/num"
)

// Types that no product has kernels for run as another type, into which Recode turns their blocks:
//
//	MXFP4   as Q5_0  d·q, q within ±12, d a power of two
//	IQ4_NL  as Q8_0  d·q, q of 8 bits
//	Q3_K    as Q6_K  d·s·q for every 16 elements, s of 6 bits, q of 3
//	IQ4_XS  as Q8_0  d·s·q for every 32 elements; d·s is rounded to a half
//	Q2_K    as F16   each element is rounded to a half
//
// The first three are exact, MXFP4 but for blocks of weights below 2⁻²⁰.
var runsAs = map[Type]Type{MXFP4: Q5_0, IQ4_NL: Q8_0, IQ4_XS: Q8_0, Q3_K: Q6_K, Q2_K: F16}

// RunsAs returns the type that products read weights of type t in: t, or what Recode makes of it.
func (t Type) RunsAs() Type {
	if as, ok := runsAs[t]; ok {
		return as
	}
	return t
}

// Recode turns whole blocks of type t into those of t.RunsAs(), appended to dst.
func Recode(t Type, src, dst []byte) ([]byte, error) {
	elements, size := t.Block()
	to, _ := t.RunsAs().Size(elements)
	if elements == 0 || t.RunsAs() == t || len(src)%size != 0 {
		return nil, fmt.Errorf("%d bytes of %v are not whole blocks that run as another type", len(src), t)
	}
	for ; len(src) > 0; src = src[size:] {
		at := len(dst)
		dst = append(dst, make([]byte, to)...)
		if err := recodeBlock(t, src[:size], dst[at:]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func recodeBlock(t Type, src, dst []byte) error {
	le := binary.LittleEndian
	switch t {
	case MXFP4:
		return recodeMXFP4(src, dst)
	case IQ4_NL:
		copy(dst[:2], src)
		for i, q := range src[2:18] {
			dst[2+i], dst[18+i] = byte(iq4Values[q&15]), byte(iq4Values[q>>4])
		}
	case IQ4_XS:
		d := half(src)
		for b := range 8 {
			h := num.ToF16(d * float32(iq4Scale(src, b)))
			if h&0x7fff == 0x7c00 {
				return errors.New("a scale of IQ4_XS is beyond half precision")
			}
			le.PutUint16(dst[34*b:], h)
			for i, q := range src[8+16*b:][:16] {
				dst[34*b+2+i], dst[34*b+18+i] = byte(iq4Values[q&15]), byte(iq4Values[q>>4])
			}
		}
	case Q3_K:
		low, high, scales := dst[:128], dst[128:192], dst[192:208]
		for e := range 256 { // Q6_K: element 128h + 32j + l
			q := byte(q3Element(src, e) + 32)
			h, j, l := e/128, e/32%4, e%32
			low[64*h+l+32*(j%2)] |= q & 15 << (4 * (j / 2))
			high[32*h+l] |= q >> 4 << (2 * j)
		}
		for b := range 16 {
			scales[b] = byte(q3Scale(src, b))
		}
		copy(dst[208:], src[108:110])
	default: // Q2_K
		var x [256]float32
		decodeQ2K(src, x[:])
		for i, v := range x {
			le.PutUint16(dst[2*i:], num.ToF16(v))
		}
	}
	return nil
}

// recodeMXFP4 keeps a block's integers where its scale is a half. Of a scale below all halves, whose
// elements are less than 2⁻²⁰, it rounds the elements to multiples of the least half.
func recodeMXFP4(src, dst []byte) error {
	const least = 104 // the exponent of a scale of 2⁻²⁴
	e := int(src[0])
	if e > least+39 {
		return fmt.Errorf("a scale of MXFP4 is 2^%d, beyond half precision", e-128)
	}
	binary.LittleEndian.PutUint16(dst, num.ToF16(scaleMXFP4(byte(max(e, least)))))
	high := uint32(0)
	set := func(i int, code byte) {
		q := int(mxfp4Values[code])
		if e < least {
			q = int(math.RoundToEven(math.Ldexp(float64(q), e-least)))
		}
		q += 16
		dst[6+i%16] |= byte(q) & 15 << (i / 16 * 4)
		high |= uint32(q) >> 4 << i
	}
	for i, q := range src[1:17] {
		set(i, q&15)
		set(i+16, q>>4)
	}
	binary.LittleEndian.PutUint32(dst[2:], high)
	return nil
}
