package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packedKernels emits what products of two packed matrices need. A panel of the one is the rows
// of the other: rows lie 4 bytes apart, and a step on is a panel's step, and otherwise the kernels
// are those of floatKernels.
func packedKernels() {
	zmm := kernel{maxRows: 8, zmm: true, unroll: 4, pfDense: 8, pfSparse: 2}

	k := zmm
	k.name, k.doc = "mulPackedF32AVX512", "mulPackedF32AVX512 multiplies an f32 panel by rows of another."
	k.wStep = 128
	k.xStep = 128
	k.step = stepF32
	k.generate()

	k = zmm
	k.name, k.doc = "mulPackedBF16AVX512BF16", "mulPackedBF16AVX512BF16 multiplies a bf16 panel by rows of another."
	k.wStep = 128
	k.xStep = 128
	k.step = stepBF16Native
	k.generate()

	k = kernel{maxRows: 6, unroll: 2, pfDense: 4, pfSparse: 2}
	k.name, k.doc = "mulPackedF32AVX2", "mulPackedF32AVX2 multiplies half an f32 panel by rows of another."
	k.wStep = 128
	k.xStep = 128
	k.step = stepF32
	k.generate()

	packPairs()
	packPairsAVX2()
}

// packPairs rounds two rows of 32 f32 at a time to bf16 and interleaves them: a step of a bf16
// panel out of rows k and k+1 of the transposed matrix.
func packPairs() {
	function("packPairsAVX512BF16", "(dst *byte, src *float32, stride, pairs int)",
		"packPairsAVX512BF16 packs so many pairs of rows, stride bytes apart, as steps of a bf16 panel.")
	dst := reg.RDI
	src := reg.RSI
	stride := reg.R9
	n := reg.RCX
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("stride"), stride)
	Load(Param("pairs"), n)
	order := GLOBL("pairs", RODATA|NOPTR)
	for i := range 16 {
		DATA(i*4, U32(uint32(i)|uint32(16+i)<<16))
	}
	VMOVDQU64(order, Z(6))
	Label("loop")
	for v := range 2 {
		VMOVUPS(Mem{Base: src, Disp: v * 64}, Z(v))
		VMOVUPS(Mem{Base: src, Index: stride, Scale: 1, Disp: v * 64}, Z(2+v))
		vcvtne2ps2bf16(Z(v), Z(2+v), Z(4))
		VPERMW(Z(4), Z(6), Z(4))
		VMOVDQU64(Z(4), Mem{Base: dst, Disp: v * 64})
	}
	LEAQ(Mem{Base: src, Index: stride, Scale: 2}, src)
	ADDQ(imm(128), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// packPairsAVX2 is packPairs with AVX2's own rounding.
func packPairsAVX2() {
	function("packPairsAVX2", "(dst *byte, src *float32, stride, pairs int)",
		"packPairsAVX2 packs so many pairs of rows, stride bytes apart, as steps of a bf16 panel.")
	dst := reg.RDI
	src := reg.RSI
	stride := reg.R9
	n := reg.RCX
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("stride"), stride)
	Load(Param("pairs"), n)
	round := roundingAVX2()
	Label("loop")
	for v := range 4 {
		VMOVUPS(Mem{Base: src, Disp: v * 32}, Y(0))
		round(Y(0), Y(4))
		VMOVUPS(Mem{Base: src, Index: stride, Scale: 1, Disp: v * 32}, Y(0))
		round(Y(0), Y(5))
		VPSRLD(U8(16), Y(4), Y(4))
		VPOR(Y(4), Y(5), Y(5))
		VMOVDQU(Y(5), Mem{Base: dst, Disp: v * 32})
	}
	LEAQ(Mem{Base: src, Index: stride, Scale: 2}, src)
	ADDQ(imm(128), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
