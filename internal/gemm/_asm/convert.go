package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func convertKernels() {
	roundAVX2()
	pairsAVX512BF16()
	quantizeAVX2("quantizeAVX2", q8X)
	quantizeAVX2("quantizeKAVX2", kX)
}

// roundAVX2 rounds f32 to bf16 in place in the f32 format: u + 0x7fff + (bit 16 of u), the low
// half cleared. A subnormal is zero before rounding; a NaN is made quiet and not rounded, as
// the carry might make it an infinity or a zero.
func roundAVX2() {
	TEXT("roundAVX2", NOSPLIT, "func(dst *byte, src *float32, n int)")
	Doc("roundAVX2 rounds n f32, a multiple of 8, to bf16, each kept as an f32.")
	dst, src, n := reg.RDI, reg.RSI, reg.RCX
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("n"), n)
	constant := func(v uint32, i int) reg.VecPhysical {
		MOVL(U32(v), reg.EAX)
		VMOVD(reg.EAX, vector(i, reg.S128))
		VPBROADCASTD(vector(i, reg.S128), Y(i))
		return Y(i)
	}
	exp, sign, half, high, one, quiet := constant(0x7f800000, 8), constant(0x80000000, 9), constant(0x7fff, 10), constant(0xffff0000, 11), constant(1, 12), constant(0x400000, 13)
	VPXOR(Y(14), Y(14), Y(14))
	Label("loop")
	u, r, t, q := Y(0), Y(1), Y(2), Y(3)
	VMOVUPS(Mem{Base: src}, u)
	VPSRLD(U8(16), u, t)
	VPAND(one, t, t)
	VPADDD(half, u, r)
	VPADDD(t, r, r)
	VPAND(high, r, r)
	VPAND(sign, u, t)
	VPAND(exp, u, q)
	VPCMPEQD(Y(14), q, q) // subnormal or zero
	VBLENDVPS(q, t, r, r)
	VPOR(quiet, u, t)
	VPAND(high, t, t)
	VCMPPS(U8(3), u, u, q) // unordered: NaN
	VBLENDVPS(q, t, r, r)
	VMOVUPS(r, Mem{Base: dst})
	ADDQ(imm(32), src)
	ADDQ(imm(32), dst)
	SUBQ(imm(8), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func pairsAVX512BF16() {
	TEXT("pairsAVX512BF16", NOSPLIT, "func(dst *byte, src *float32, n int)")
	Doc("pairsAVX512BF16 rounds n f32, a multiple of 16, to bf16.")
	dst, src, n := reg.RDI, reg.RSI, reg.RCX
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("n"), n)
	Label("loop")
	VMOVUPS(Mem{Base: src}, Z(0))
	vcvtneps2bf16(Z(0), Y(1))
	VMOVUPS(Y(1), Mem{Base: dst})
	ADDQ(imm(64), src)
	ADDQ(imm(32), dst)
	SUBQ(imm(16), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// quantizeAVX2 is quantizeRow, for blocks of so many bytes. The largest magnitude is found on the bits as integers, which
// puts infinities and NaNs on top.
func quantizeAVX2(name string, size int) {
	TEXT(name, NOSPLIT, "func(dst *byte, src *float32, n int)")
	Doc(name + " quantises n f32, a multiple of 32, to groups of int8.")
	dst, src, n := reg.RDI, reg.RSI, reg.RCX
	q, m := reg.RDX, reg.RBX // blocks in the group; elements
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("n"), n)
	abs, ones, order, words := Y(15), Y(14), Y(13), Y(12)
	VPCMPEQD(abs, abs, abs)
	VPSRLW(U8(15), abs, words)
	VPSRLD(U8(1), abs, abs)
	VPCMPEQD(ones, ones, ones)
	VPABSB(ones, ones)
	// VPACKSSDW and VPACKSSWB work within 128 bits: this puts the dwords right again.
	perm := GLOBL(name+"Order", RODATA|NOPTR)
	for i, d := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		DATA(i*4, U32(d))
	}
	VMOVDQU(perm, order)

	Label("group")
	MOVL(U32(q8Group), q.As32())
	MOVQ(n, m)
	SHRQ(U8(5), m)
	CMPQ(m, q)
	CMOVQLT(m, q)
	MOVQ(q, m)

	// The top of the group.
	max, t := Y(0), Y(1)
	VPXOR(max, max, max)
	MOVQ(src, reg.R8)
	Label("top")
	for i := range 4 {
		VPAND(Mem{Base: reg.R8, Disp: i * 32}, abs, t)
		VPMAXUD(t, max, max)
	}
	ADDQ(imm(128), reg.R8)
	DECQ(m)
	JNZ(LabelRef("top"))
	VEXTRACTI128(U8(1), max, reg.X1)
	VPMAXUD(reg.X1, reg.X0, reg.X0)
	VPSHUFD(U8(0x4e), reg.X0, reg.X1)
	VPMAXUD(reg.X1, reg.X0, reg.X0)
	VPSHUFD(U8(0xb1), reg.X0, reg.X1)
	VPMAXUD(reg.X1, reg.X0, reg.X0)
	VMOVD(reg.X0, reg.R9.As32())

	// scale = top/127 in R10, 127/top in all of Y2, and Y3 clears what cannot be quantised.
	inv, keep := Y(2), Y(3)
	MOVL(U32(0x42fe0000), reg.EAX) // 127
	VMOVD(reg.EAX, reg.X4)
	VDIVSS(reg.X4, reg.X0, reg.X5)
	VMOVD(reg.X5, reg.R10.As32())
	VDIVSS(reg.X0, reg.X4, reg.X5)
	VPBROADCASTD(reg.X5, inv)
	VPCMPEQD(keep, keep, keep)
	CMPL(reg.R9.As32(), U32(0x7f800000))
	JAE(LabelRef("lost"))
	CMPL(reg.R9.As32(), U32((127-100)<<23))
	JAE(LabelRef("blocks"))
	XORL(reg.R10.As32(), reg.R10.As32())
	JMP(LabelRef("clear"))
	Label("lost")
	MOVL(U32(0x7fc00000), reg.R10.As32())
	Label("clear")
	VPXOR(keep, keep, keep)
	VPXOR(inv, inv, inv)

	Label("blocks")
	for i := range 4 {
		v := Y(4 + i)
		VPAND(Mem{Base: src, Disp: i * 32}, keep, v)
		VMULPS(inv, v, v)
		VCVTPS2DQ(v, v)
	}
	VPACKSSDW(Y(5), Y(4), Y(4))
	VPACKSSDW(Y(7), Y(6), Y(6))
	VPACKSSWB(Y(6), Y(4), Y(4))
	VPERMD(Y(4), order, Y(4))
	VMOVDQU(Y(4), Mem{Base: dst})
	// The sum: pairs to 16 bits, pairs of those to 32, and across.
	VPMADDUBSW(Y(4), ones, Y(4))
	VPMADDWD(words, Y(4), Y(4))
	VEXTRACTI128(U8(1), Y(4), reg.X5)
	if size == q8X {
		VPADDD(reg.X5, reg.X4, reg.X4)
		VPSHUFD(U8(0x4e), reg.X4, reg.X5)
		VPADDD(reg.X5, reg.X4, reg.X4)
		VPSHUFD(U8(0xb1), reg.X4, reg.X5)
		VPADDD(reg.X5, reg.X4, reg.X4)
		VMOVD(reg.X4, reg.EAX)
		SHLL(U8(7), reg.EAX)
		NEGL(reg.EAX)
		MOVL(reg.EAX, Mem{Base: dst, Disp: 32})
	} else { // of the halves, and all
		VPHADDD(reg.X5, reg.X4, reg.X4)
		VPHADDD(reg.X4, reg.X4, reg.X4)
		VPXOR(reg.X5, reg.X5, reg.X5)
		VPSUBD(reg.X4, reg.X5, reg.X4)
		VPHADDD(reg.X4, reg.X4, reg.X5)
		VCVTDQ2PS(reg.X5, reg.X5)
		VPSLLD(U8(5), reg.X4, reg.X4)
		VMOVQ(reg.X4, Mem{Base: dst, Disp: kHalves})
		VMOVD(reg.X5, Mem{Base: dst, Disp: kSum})
	}
	ADDQ(imm(128), src)
	ADDQ(imm(size), dst)
	SUBQ(imm(32), n)
	DECQ(q)
	JNZ(LabelRef("blocks"))
	MOVL(reg.R10.As32(), Mem{Base: dst})
	ADDQ(imm(4), dst)
	TESTQ(n, n)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}
