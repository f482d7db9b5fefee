package simd

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/grovellm/grove/internal/kernels/num"
)

// Every int8 is itself in bf16, in slices of any length, and nothing is written beyond them.
func TestIntsToBF16(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for n := range 300 {
			x, dst := make([]byte, n), make([]byte, 2*n+1)
			for i := range x {
				x[i] = byte(i*7 + n)
			}
			dst[2*n] = 123
			IntsToBF16(dst[:2*n], x)
			for i, v := range x {
				if got := num.BF16(binary.LittleEndian.Uint16(dst[2*i:])); got != float32(int8(v)) {
					t.Fatalf("element %d of %d: %d is %g", i, n, int8(v), got)
				}
			}
			if dst[2*n] != 123 {
				t.Fatalf("%d elements: one more is written", n)
			}
		}
	})
}

// A product with any f16 is rounded once.
func TestMulF16(t *testing.T) {
	all := make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(all[2*i:], uint16(i))
	}
	atLevels(t, func(t *testing.T) {
		r := newRand(1)
		for at, size := 0, 0; at < len(all); at, size = at+2*size, size+1 {
			h := all[at:min(at+2*size, len(all))]
			n := len(h) / 2
			x, dst := make([]float32, n), make([]float32, n+1)
			for i := range x {
				x[i] = float32(r.Uint32()) * 0x1p-20
			}
			dst[n] = 12345
			MulF16(dst, x, h)
			for i := range x {
				by := num.F16(binary.LittleEndian.Uint16(h[2*i:]))
				want := float32(x[i] * by)
				if got := dst[i]; math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
					t.Fatalf("%g times %g is %g, want %g", x[i], by, got, want)
				}
			}
			if dst[n] != 12345 {
				t.Fatalf("%d elements: one more is written", n)
			}
		}
	})
}
