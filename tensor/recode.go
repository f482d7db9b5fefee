package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/grovellm/grove/internal/kernels/num"
)

// Types that no product has kernels for run as another type, into which Recode turns their blocks:
//
//	Q3_K    as Q6_K    d·s·q for every 16 elements, s of 6 bits, q of 3; exactly
//	IQ4_XS  as IQ4_NL  d·s·q for every 32 elements; d·s is rounded to a half
//	Q2_K    as F16     each element is rounded to a half
var runsAs = map[Type]Type{Q3_K: Q6_K, IQ4_XS: IQ4_NL, Q2_K: F16}

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
	case IQ4_XS:
		d := half(src)
		for b := range 8 {
			h := num.ToF16(d * float32(iq4Scale(src, b)))
			if h&0x7fff == 0x7c00 {
				return errors.New("a scale of IQ4_XS is beyond half precision")
			}
			le.PutUint16(dst[18*b:], h)
			copy(dst[18*b+2:][:16], src[8+16*b:])
		}
	case Q3_K:
		low := dst[:128]
		high := dst[128:192]
		scales := dst[192:208]
		for e := range 256 { // Q6_K: element 128h + 32j + l
			q := byte(q3Element(src, e) + 32)
			h := e / 128
			j := e / 32 % 4
			l := e % 32
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
