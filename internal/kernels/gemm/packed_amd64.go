//go:build !purego

package gemm

import "github.com/grovellm/grove/internal/kernels/cpu"

// packedEngine picks the assembly for products of two packed matrices; if there is none, the rows
// of one go through the kernels of Mul.
func packedEngine(t Type, l cpu.Level) (e engine, ok bool) {
	id := 0
	switch {
	case t == F32 && l >= cpu.AVX512:
		id = idPackedF32AVX512
	case t == F32 && l >= cpu.AVX2:
		id = idPackedF32AVX2
	case t == BF16 && pairsAt(l):
		id = idPackedBF16AVX512BF16
	default:
		return engine{}, false
	}
	e = engines[id]
	e.id = id
	return e, true
}

// packPairs packs as much of a full panel of bf16 as it can, and returns the number of inputs.
func packPairs(dst []byte, src []float32, stride, in int) int {
	level := cpu.Active()
	if level < cpu.AVX2 || in < 2 {
		return 0
	}
	to, from := &dst[:in/2*Panel*4][0], &src[:(in/2*2-1)*stride+Panel][0]
	if level >= cpu.AVX512BF16 {
		packPairsAVX512BF16(to, from, stride*4, in/2)
	} else {
		packPairsAVX2(to, from, stride*4, in/2)
	}
	return in &^ 1
}
