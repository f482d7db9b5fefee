package simd

import (
	"encoding/binary"
	"math"

	"github.com/grovellm/grove/internal/kernels/num"
)

// Elements of a Q8_0 cache: values are int8 with f16 scales, and their products are of bf16. They
// are passed as bytes, little endian.

// IntsToBF16 computes dst, in bf16, from x, in int8. bf16 represents every int8 exactly.
func IntsToBF16(dst, x []byte) {
	dst = dst[:2*len(x)]
	n := len(x) &^ (2*lanes - 1) // the kernels convert whole vectors
	intsToBF16(dst[:2*n], x[:n])
	intsToBF16Generic(dst[2*n:], x[n:])
}

// MulF16 computes dst = x · h, where h is in f16.
func MulF16(dst, x []float32, h []byte) {
	dst, h = dst[:len(x)], h[:2*len(x)]
	n := len(x) &^ (lanes - 1)
	mulF16(dst[:n], x[:n], h[:2*n])
	mulF16Generic(dst[n:], x[n:], h[2*n:])
}

// BlendRows sets each row of dst, of cols elements, to a times itself plus b times the same row of
// x, with one a and b per row: FMA(b, x, a·dst).
func BlendRows(dst, x, a, b []float32, cols int) {
	dst = dst[:len(a)*cols]
	x = x[:len(a)*cols]
	b = b[:len(a)]
	if cols%lanes != 0 {
		blendRowsGeneric(dst, x, a, b, cols)
		return
	}
	blendRows(dst, x, a, b, cols)
}

func blendRowsGeneric(dst, x, a, b []float32, cols int) {
	for r := range a {
		for i := r * cols; i < (r+1)*cols; i++ {
			dst[i] = num.FMA(b[r], x[i], float32(a[r]*dst[i]))
		}
	}
}

func intsToBF16Generic(dst, x []byte) {
	for i, v := range x {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(math.Float32bits(float32(int8(v)))>>16))
	}
}

func mulF16Generic(dst, x []float32, h []byte) {
	for i, v := range x {
		dst[i] = v * num.F16(binary.LittleEndian.Uint16(h[2*i:]))
	}
}
