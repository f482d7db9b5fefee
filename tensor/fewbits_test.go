package tensor

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/num"
	"pgregory.net/rapid"
)

// A block that was decoded is encoded to the same numbers.
func TestEncodeDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]Type{IQ4_NL, MXFP4}).Draw(t, "type")
		n, size := typ.Block()
		src, got := make([]byte, size), make([]byte, size)
		for i := range src {
			src[i] = rapid.Byte().Draw(t, "byte")
		}
		if typ == IQ4_NL { // a normal half
			h := rapid.Uint16Range(0x0400, 0x7000).Draw(t, "scale") | rapid.SampledFrom([]uint16{0, 0x8000}).Draw(t, "sign")
			binary.LittleEndian.PutUint16(src, h)
		} else {
			src[0] = rapid.ByteRange(3, 250).Draw(t, "exponent")
			src[1] |= 7 // a block whose largest magnitude is less than 8 has a smaller exponent
		}
		want, have := make([]float32, n), make([]float32, n)
		if err := Dequantize(typ, src, want); err != nil {
			t.Fatal(err)
		}
		if err := Quantize(typ, want, got); err != nil {
			t.Fatal(err)
		}
		if err := Dequantize(typ, got, have); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if have[i] != w {
				t.Fatalf("%v: element %d is %g after encoding, was %g", typ, i, have[i], w)
			}
		}
	})
}

// IQ4_NL's values suit weights better than Q4_0's even steps do: the squared error is a seventh less.
func TestIQ4NLIsCloserThanQ4_0(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, 32*1000)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	squares := func(typ Type) (sum float64) {
		size, err := typ.Size(len(x))
		if err != nil {
			t.Fatal(err)
		}
		b, y := make([]byte, size), make([]float32, len(x))
		if err := Quantize(typ, x, b); err != nil {
			t.Fatal(err)
		}
		if err := Dequantize(typ, b, y); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			sum += float64(x[i]-y[i]) * float64(x[i]-y[i])
		}
		return sum
	}
	if ratio := squares(IQ4_NL) / squares(Q4_0); ratio > 6.0/7 {
		t.Errorf("the squared error of IQ4_NL is %.3f of Q4_0's", ratio)
	}
}

// Every scale of MXFP4 is a bf16.
func TestScalesOfMXFP4(t *testing.T) {
	for e := range 256 {
		d := num.ScaleMXFP4(byte(e))
		if x := num.BF16(num.ToBF16(d)); x != d || num.ExponentMXFP4(x) != byte(e) {
			t.Errorf("the scale of exponent %d is %g, as bf16 %g, of exponent %d", e, d, x, num.ExponentMXFP4(x))
		}
	}
}
