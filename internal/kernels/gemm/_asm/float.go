package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// floatKernels emits the kernels whose steps are fused multiply-adds: of f32, f16 and bf16
// weights. With 12 rows of two ZMM, or 6 of two YMM, there are more independent chains than
// the latency of the multiply unit asks for, and 7 loads to 12 multiplies, or 4 to 6.
func floatKernels() {
	zmm := kernel{maxRows: tallRows, zmm: true, unroll: 4, pfDense: 8, pfSparse: 2}
	ymm := kernel{maxRows: 6, unroll: 2, pfDense: 4, pfSparse: 2}

	k := zmm
	k.name, k.doc = "mulF32AVX512", "mulF32AVX512 multiplies an f32 panel by f32."
	k.wStep = 128
	k.xStep = 4
	k.step = stepF32
	k.generate()

	k = zmm
	k.name, k.doc = "mulF16AVX512", "mulF16AVX512 multiplies an f16 panel by f32."
	k.wStep = 64
	k.xStep = 4
	k.step = stepF16
	k.pfDense = 5
	k.generate()

	k = zmm
	k.name, k.doc = "mulBF16AVX512", "mulBF16AVX512 multiplies a bf16 panel by f32 rounded to bf16."
	k.wStep = 128
	k.xStep = 8
	k.step = stepBF16
	k.flush = true
	k.setup = func() {
		MOVL(U32(0xffff0000), tmp.As32())
		VPBROADCASTD(tmp.As32(), Z(tallRows*vecs+3))
	}
	k.generate()

	k = zmm
	k.name, k.doc = "mulBF16AVX512BF16", "mulBF16AVX512BF16 multiplies a bf16 panel by pairs of bf16."
	k.wStep = 128
	k.xStep = 4
	k.step = stepBF16Native
	k.generate()

	k = ymm
	k.name, k.doc = "mulF32AVX2", "mulF32AVX2 multiplies half an f32 panel by f32."
	k.wStep = 128
	k.xStep = 4
	k.step = stepF32
	k.generate()

	k = ymm
	k.name, k.doc = "mulF16AVX2", "mulF16AVX2 multiplies half an f16 panel by f32."
	k.wStep = 64
	k.xStep = 4
	k.step = stepF16
	k.generate()

	k = ymm
	k.name, k.doc = "mulBF16AVX2", "mulBF16AVX2 multiplies half a bf16 panel by f32 rounded to bf16."
	k.wStep = 128
	k.xStep = 8
	k.step = stepBF16
	k.flush = true
	k.setup = func() {
		MOVL(U32(0xffff0000), tmp.As32())
		VMOVD(tmp.As32(), reg.X15)
		VPBROADCASTD(reg.X15, Y(15))
	}
	k.generate()
}

// operands are the registers of a step: two of weights, one of a row's activation.
func (k *kernel) operands() (w0, w1, b reg.VecPhysical) {
	i := k.maxRows * vecs
	return k.vec(i), k.vec(i + 1), k.vec(i + 2)
}

// weights is the memory of a step's v-th vector of weights.
func (k *kernel) weights(u, v, size int) Mem {
	return Mem{Base: w, Disp: u*k.wStep + v*size}
}

// fma adds the products of w0 and w1 with the activation at disp of every row.
func (k *kernel) fma(r, disp int) {
	w0, w1, b := k.operands()
	for row := range r {
		if k.zmm {
			VPBROADCASTD(x(row, disp), b) // twice as fast here as VBROADCASTSS
		} else {
			VBROADCASTSS(x(row, disp), b)
		}
		VFMADD231PS(w0, b, k.acc(row, 0))
		VFMADD231PS(w1, b, k.acc(row, 1))
	}
}

func stepF32(k *kernel, r, u int) {
	w0, w1, _ := k.operands()
	VMOVUPS(k.weights(u, 0, k.width()), w0)
	VMOVUPS(k.weights(u, 1, k.width()), w1)
	k.fma(r, u*k.xStep)
}

func stepF16(k *kernel, r, u int) {
	w0, w1, _ := k.operands()
	VCVTPH2PS(k.weights(u, 0, k.width()/2), w0)
	VCVTPH2PS(k.weights(u, 1, k.width()/2), w1)
	k.fma(r, u*k.xStep)
}

// stepBF16 does what VDPBF16PS does in two FMAs: the odd element of each pair (the high
// half, an f32 once the low half is cleared), then the even one (shifted up).
func stepBF16(k *kernel, r, u int) {
	w0, w1, _ := k.operands()
	mask := k.vec(k.maxRows*vecs + 3)
	for v, wv := range []reg.VecPhysical{w0, w1} {
		if k.zmm {
			VPANDD(k.weights(u, v, k.width()), mask, wv)
		} else {
			VPAND(k.weights(u, v, k.width()), mask, wv)
		}
	}
	k.fma(r, u*k.xStep+4)
	for v, wv := range []reg.VecPhysical{w0, w1} {
		VMOVUPS(k.weights(u, v, k.width()), wv)
		VPSLLD(U8(16), wv, wv)
	}
	k.fma(r, u*k.xStep)
}

func stepBF16Native(k *kernel, r, u int) {
	w0, w1, b := k.operands()
	VMOVUPS(k.weights(u, 0, 64), w0)
	VMOVUPS(k.weights(u, 1, 64), w1)
	for row := range r {
		VPBROADCASTD(x(row, u*k.xStep), b)
		vdpbf16ps(w0, b, k.acc(row, 0))
		vdpbf16ps(w1, b, k.acc(row, 1))
	}
}
