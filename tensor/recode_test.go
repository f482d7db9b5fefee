package tensor

import (
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Blocks that run as another type say there what they said; scales and elements that are rounded to a
// half are off by a half's rounding at most.
func TestRecodeKeepsNumbers(t *testing.T) {
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
				if from == IQ4_XS {
					src[b+1] &= 0xdf // a scale that stays a half when multiplied by 31
				}
			}
			got, err := Recode(from, src, []byte{7})
			if err != nil || got[0] != 7 {
				t.Fatal(err)
			}
			want, have := make([]float32, len(src)/size*n), make([]float32, len(src)/size*n)
			if err := Dequantize(from, src, want); err != nil {
				t.Fatal(err)
			}
			if err := Dequantize(to, got[1:], have); err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				slack := 0.0
				switch {
				case from == IQ4_XS:
					slack = math.Abs(float64(w))/2048 + math.Ldexp(127, -25)
				case from == Q2_K:
					slack = math.Abs(float64(w))/2048 + math.Ldexp(1, -25)
				}
				if d := math.Abs(float64(have[i]) - float64(w)); d > slack {
					t.Fatalf("element %d of %v is %g, as %v %g", i, from, w, to, have[i])
				}
			}
		})
	}
}

// A scale of IQ4_XS beyond half precision is refused, and so is a type that runs as itself.
func TestRecodeRefusals(t *testing.T) {
	block := make([]byte, 136)
	binary.LittleEndian.PutUint16(block, 0x7bff) // the largest half, times −32
	if _, err := Recode(IQ4_XS, block, nil); err == nil {
		t.Error("a scale beyond half precision is not refused")
	}
	for _, typ := range []Type{Q8_0, IQ4_NL, MXFP4} {
		_, size := typ.Block()
		if _, err := Recode(typ, make([]byte, size), nil); err == nil {
			t.Errorf("%v is recoded", typ)
		}
	}
}
