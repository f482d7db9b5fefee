package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/grovellm/grove/internal/kernels/codebook"
	"github.com/grovellm/grove/internal/kernels/num"
)

// Types that no product has kernels for run as another type, into which Recode turns their blocks:
//
//	Q3_K    as Q6_K    d·s·q for every 16 elements, s of 6 bits, q of 3; exactly
//	IQ4_XS  as IQ4_NL  d·s·q for every 32 elements; d·s is rounded to a half
//	Q2_K    as F16     each element is rounded to a half
//	Q1_0    as Q4_0    d·q, of rows that are no multiple of 256; exactly
//	Q2_0    as Q4_0    the same
var runsAs = map[Type]Type{Q3_K: Q6_K, IQ4_XS: IQ4_NL, Q2_K: F16, Q1_0: Q4_0, Q2_0: Q4_0}

// RunsAs returns the type that products read rows of so many weights of type t in: t, or what Recode makes of it.
func (t Type) RunsAs(cols int) Type {
	as, ok := runsAs[t]
	if n, _ := t.Block(); !ok || n < codebook.Elements && cols%codebook.Elements == 0 {
		return t
	}
	return as
}

// Recode turns whole blocks of type t into those of the type that they run as, appended to dst.
func Recode(t Type, src, dst []byte) ([]byte, error) {
	elements, size := t.Block()
	to, err := runsAs[t].Size(elements)
	if _, ok := runsAs[t]; !ok || err != nil || len(src)%size != 0 {
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
	case Q1_0, Q2_0:
		recodeFew(t, src, dst)
	default: // Q2_K
		var x [256]float32
		decodeQ2K(src, x[:])
		for i, v := range x {
			le.PutUint16(dst[2*i:], num.ToF16(v))
		}
	}
	return nil
}

// recodeFew makes blocks of Q4_0, whose integers are q − 8, of one of Q1_0 or Q2_0.
func recodeFew(t Type, src, dst []byte) {
	elements, size := t.Block()
	bits := 8 * (size - 2) / elements
	for e := range elements {
		q := src[2+e*bits/8] >> (e * bits % 8) & (1<<bits - 1)
		if bits == 1 {
			q *= 2 // −1 or 1
		}
		b := dst[e/32*18:]
		copy(b, src[:2])
		b[2+e%16] |= (q + 7) << (e % 32 / 16 * 4)
	}
}
