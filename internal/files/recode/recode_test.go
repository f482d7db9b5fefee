package recode

import (
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/tensor"
)

// halfAt is where a block keeps its half-precision numbers.
var halfAt = map[tensor.Type][]int{
	numtype.IQ4_XS: {0}, numtype.Q1_0: {0}, numtype.Q2_0: {0},
}

// Blocks that run as another type keep their values; those whose scales are rounded to a half are off by at most a
// half's rounding.
func TestKeepsNumbers(t *testing.T) {
	for from, to := range runsAs {
		rapid.Check(t, func(t *rapid.T) {
			n, size := from.Block()
			src := make([]byte, size*rapid.IntRange(1, 3).Draw(t, "blocks"))
			for i := range src {
				src[i] = rapid.Byte().Draw(t, "byte")
			}
			for b := 0; b < len(src); b += size {
				for _, h := range halfAt[from] {
					src[b+h+1] &= 0xbf
				}
				if from == numtype.IQ4_XS {
					src[b+1] &= 0xdf // a scale that stays a half when multiplied by 31
				}
			}
			got, err := Append(from, src, []byte{7})
			if err != nil || got[0] != 7 {
				t.Fatal(err)
			}
			want, have := make([]float32, len(src)/size*n), make([]float32, len(src)/size*n)
			if err := tensor.Dequantize(from, src, want); err != nil {
				t.Fatal(err)
			}
			if err := tensor.Dequantize(to, got[1:], have); err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				slack := 0.0
				if from == numtype.IQ4_XS {
					slack = math.Abs(float64(w))/2048 + math.Ldexp(127, -25)
				}
				if d := math.Abs(float64(have[i]) - float64(w)); d > slack {
					t.Fatalf("element %d of %v is %g, as %v %g", i, from, w, to, have[i])
				}
			}
		})
	}
}

// A scale of IQ4_XS beyond half precision is refused, and so is a type that runs as itself.
func TestRefusals(t *testing.T) {
	block := make([]byte, 136)
	binary.LittleEndian.PutUint16(block, 0x7bff) // the largest half, times −32
	if _, err := Append(numtype.IQ4_XS, block, nil); err == nil {
		t.Error("a scale beyond half precision is not refused")
	}
	for _, typ := range []tensor.Type{tensor.Q8_0, tensor.IQ4_NL, tensor.MXFP4} {
		_, size := typ.Block()
		if _, err := Append(typ, make([]byte, size), nil); err == nil {
			t.Errorf("%v is recoded", typ)
		}
	}
}
