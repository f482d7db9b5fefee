// Package recode converts blocks of types without kernels to blocks of types with kernels.
package recode

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/kernels/codebook"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/tensor"
)

// Types without kernels for products run as another type, to which Append converts their blocks:
//
//	IQ4_XS  as IQ4_NL  d·s·q for every 32 elements; d·s is rounded to a half
//	Q1_0    as Q4_0    d·q, of rows that are no multiple of 256; exactly
//	Q2_0    as Q4_0    the same
var runsAs = map[tensor.Type]tensor.Type{
	numtype.IQ4_XS: tensor.IQ4_NL, numtype.Q1_0: tensor.Q4_0, numtype.Q2_0: tensor.Q4_0,
}

// RunsAs returns the type in which products read rows of cols weights of type t: t, or what Append makes of it.
func RunsAs(t tensor.Type, cols int) tensor.Type {
	as, ok := runsAs[t]
	if n, _ := t.Block(); !ok || n < codebook.Elements && cols%codebook.Elements == 0 {
		return t
	}
	return as
}

// Append converts whole blocks of type t to the type that they run as, and appends them to dst.
func Append(t tensor.Type, src, dst []byte) ([]byte, error) {
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

// CheckWritable returns an error for a type that tensor.Quantize does not write.
func CheckWritable(t tensor.Type) error { return tensor.Quantize(t, nil, nil) }

func recodeBlock(t tensor.Type, src, dst []byte) error {
	le := binary.LittleEndian
	switch t {
	case numtype.IQ4_XS:
		d := num.F16(le.Uint16(src))
		for b := range 8 {
			h := num.ToF16(d * float32(numtype.IQ4Scale(src, b)))
			if h&0x7fff == 0x7c00 {
				return errors.New("a scale of IQ4_XS is beyond half precision")
			}
			le.PutUint16(dst[18*b:], h)
			copy(dst[18*b+2:][:16], src[8+16*b:])
		}
	default:
		recodeFew(t, src, dst)
	}
	return nil
}

// recodeFew converts a block of Q1_0 or Q2_0 to blocks of Q4_0, whose integers are q − 8.
func recodeFew(t tensor.Type, src, dst []byte) {
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
