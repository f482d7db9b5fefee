package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func convertKernels() {
	roundAVX2()
	pairsAVX512BF16()
	quantizeQ8Kernel()
	quantizeK()
}

// roundAVX2 rounds f32 to bf16 in place in the f32 format.
func roundAVX2() {
	function("roundAVX2", "(dst *byte, src *float32, n int)",
		"roundAVX2 rounds n f32, a multiple of 8, to bf16, each kept as an f32.")
	dst := reg.RDI
	src := reg.RSI
	n := reg.RCX
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("n"), n)
	round := roundingAVX2()
	Label("loop")
	VMOVUPS(Mem{Base: src}, Y(0))
	round(Y(0), Y(1))
	VMOVUPS(Y(1), Mem{Base: dst})
	ADDQ(imm(32), src)
	ADDQ(imm(32), dst)
	SUBQ(imm(8), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// roundingAVX2 loads constants into registers 8 to 14, and returns what makes r the bf16 of u in the
// f32 format: u + 0x7fff + (bit 16 of u), the low half cleared. A subnormal is zero before rounding; a
// NaN is made quiet and not rounded, as the carry might make it an infinity or a zero. Registers 2 and
// 3 change too.
func roundingAVX2() func(u, r reg.VecPhysical) {
	constant := func(v uint32, i int) reg.VecPhysical {
		MOVL(U32(v), reg.EAX)
		VMOVD(reg.EAX, vector(i, reg.S128))
		VPBROADCASTD(vector(i, reg.S128), Y(i))
		return Y(i)
	}
	exp := constant(0x7f800000, 8)
	sign := constant(0x80000000, 9)
	half := constant(0x7fff, 10)
	high := constant(0xffff0000, 11)
	one := constant(1, 12)
	quiet := constant(0x400000, 13)
	VPXOR(Y(14), Y(14), Y(14))
	return func(u, r reg.VecPhysical) {
		t := Y(2)
		q := Y(3)
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
	}
}

func pairsAVX512BF16() {
	function("pairsAVX512BF16", "(dst *byte, src *float32, n int)",
		"pairsAVX512BF16 rounds n f32, a multiple of 16, to bf16.")
	dst := reg.RDI
	src := reg.RSI
	n := reg.RCX
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

// packOrder puts the dwords right again that VPACKSSDW and VPACKSSWB leave, which work within 128 bits.
var packOrder Mem

// quantizeQ8 is quantizeRow for Q8_0, four blocks at a time: what is of a block alone is then an
// element of a vector. Each step waits for the one before. So two fours take turns step by step:
// one goes on while the other waits.
type quantizeQ8 struct {
	dst, src    reg.GPPhysical
	at          int // of the first block
	invs, keeps Mem // of each block: 127/top, and whether it can be quantised
	// what it is multiplied by before it is rounded; its scale; NaN, or zero where there is no NaN
	narrows, scales, lost Mem
}

func quantizeQ8Kernel() {
	packOrder = GLOBL("packOrder", RODATA|NOPTR)
	for i, d := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		DATA(i*4, U32(d))
	}
	constant := func(name string, bits uint32) Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i := range 8 {
			DATA(i*4, U32(bits))
		}
		return m
	}
	c := quantConstants{
		abs: constant("quantAbs", 0x7fffffff), steps: constant("quantSteps", math.Float32bits(127)),
		narrower: constant("quantNarrower", math.Float32bits(float32(126)/127)), one: constant("quantOne", math.Float32bits(1)),
		belowFloor: constant("quantBelowFloor", (127-100)<<23-1), belowInf: constant("quantBelowInf", 0x7f800000-1),
		nan: constant("quantNaN", 0x7fc00000), ones: constant("quantOnes", 0x01010101), words: constant("quantWords",
			0x00010001),
	}
	quantizeQ8Body(&c)
}

type quantConstants struct{ abs, steps, narrower, one, belowFloor, belowInf, nan, ones, words Mem }

// x is the memory of the i-th vector of block b.
func (k *quantizeQ8) x(b, i int) Mem { return Mem{Base: k.src, Disp: (k.at+b)*128 + i*32} }

// to is the memory of the result of block b, at an offset.
func (k *quantizeQ8) to(b, at int) Mem { return Mem{Base: k.dst, Disp: (k.at+b)*q8X + at} }

func X(i int) reg.VecPhysical { return vector(i, reg.S128) }

// transpose makes vectors of the elements of four, in X0 to X3, with X4 and X5.
func transpose() {
	VUNPCKLPS(X(1), X(0), X(4)) // of the first two: elements 0 and 1, then 2 and 3
	VUNPCKHPS(X(1), X(0), X(5))
	VUNPCKLPS(X(3), X(2), X(0))
	VUNPCKHPS(X(3), X(2), X(2))
	VUNPCKHPD(X(0), X(4), X(1))
	VUNPCKLPD(X(0), X(4), X(0))
	VUNPCKHPD(X(2), X(5), X(3))
	VUNPCKLPD(X(2), X(5), X(2))
}

func quantizeQ8Body(c *quantConstants) {
	function("quantizeAVX2", "(dst *byte, src *float32, n int)",
		"quantizeAVX2 quantises n f32, a multiple of 128, to blocks of int8.")
	dst, src := reg.RDI, reg.RSI
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("n"), n)
	fours := []quantizeQ8{{dst: dst, src: src}, {dst: dst, src: src, at: 4}}
	for i := range fours {
		k := &fours[i]
		for _, m := range []*Mem{&k.invs, &k.keeps, &k.narrows, &k.scales, &k.lost} {
			*m = AllocLocal(16)
		}
	}
	Label("eight")
	CMPQ(n, imm(256))
	JLT(LabelRef("four"))
	quantizeFours(fours, c)
	JMP(LabelRef("eight"))
	Label("four")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	quantizeFours(fours[:1], c)
	Label("done")
	VZEROUPPER()
	RET()
}

func quantizeFours(fours []quantizeQ8, c *quantConstants) {
	for i := range fours {
		fours[i].tops(c)
	}
	for i := range fours {
		for b := range 4 {
			fours[i].sums(b, c)
		}
		fours[i].fit(c)
	}
	for i := range fours {
		fours[i].integers(c)
	}
	blocks := 4 * len(fours)
	ADDQ(imm(blocks*128), fours[0].src)
	ADDQ(imm(blocks*q8X), fours[0].dst)
	SUBQ(imm(blocks*32), n)
}

// tops finds the largest magnitude of each block, on the bits as integers, which puts infinities
// and NaNs on top, and what follows from it.
func (k *quantizeQ8) tops(c *quantConstants) {
	mask, t := Y(6), Y(7)
	VMOVUPS(c.abs, mask)
	for b := range 4 {
		VANDPS(k.x(b, 0), mask, Y(b))
		for i := 1; i < 4; i++ {
			VANDPS(k.x(b, i), mask, t)
			VPMAXUD(t, Y(b), Y(b))
		}
		VEXTRACTI128(U8(1), Y(b), X(7))
		VPMAXUD(X(7), X(b), X(b))
	}
	transpose()
	VPMAXUD(X(1), X(0), X(0))
	VPMAXUD(X(3), X(2), X(2))
	VPMAXUD(X(2), X(0), X(0))
	VMOVUPS(c.steps, X(3))
	VDIVPS(X(3), X(0), X(4))
	VMOVUPS(X(4), k.scales)
	VDIVPS(X(0), X(3), X(3))
	VMOVUPS(X(3), k.invs)
	VPCMPGTD(c.belowFloor, X(0), X(2))
	VPCMPGTD(c.belowInf, X(0), X(1))
	VPANDN(X(2), X(1), X(2))
	VMOVDQU(X(2), k.keeps)
	VPAND(c.nan, X(1), X(1))
	VMOVDQU(X(1), k.lost)
}

// sums leaves in X(b) Σvq and Σq² of steps of / 127, then of / 126, v in units of the scale.
func (k *quantizeQ8) sums(b int, c *quantConstants) {
	inv := Y(12)
	v := Y(13)
	q := Y(14)
	// lanes are those of a sum that the i-th vector adds to: sixteen, in two registers of eight.
	lanes := func(i, sum int) reg.VecPhysical { return Y(4 + i%2*4 + sum) }
	VBROADCASTSS(k.invs.Offset(4*b), inv)
	for i := range 4 {
		VMULPS(k.x(b, i), inv, v)
		for s := 0; s < 4; s += 2 {
			if s == 0 {
				VROUNDPS(U8(0), v, q)
			} else {
				VMULPS(c.narrower, v, q)
				VROUNDPS(U8(0), q, q)
			}
			if i < 2 {
				VMULPS(v, q, lanes(i, s))
				VMULPS(q, q, lanes(i, s+1))
			} else {
				VFMADD231PS(v, q, lanes(i, s))
				VFMADD231PS(q, q, lanes(i, s+1))
			}
		}
	}
	for s := range 4 {
		VADDPS(Y(8+s), Y(4+s), Y(4+s))
	}
	VHADDPS(Y(5), Y(4), Y(4))
	VHADDPS(Y(7), Y(6), Y(6))
	VHADDPS(Y(6), Y(4), Y(4))
	VEXTRACTF128(U8(1), Y(4), X(5))
	VADDPS(X(5), X(4), X(b))
}

// fit is fitScale of package gemm, for four blocks.
func (k *quantizeQ8) fit(c *quantConstants) {
	transpose()
	fits := X(6) // whether / 126 fits better
	VMULPS(X(0), X(0), X(4))
	VMULPS(X(3), X(4), X(4))
	VMULPS(X(2), X(2), X(5))
	VMULPS(X(1), X(5), X(5))
	VCMPPS(U8(0x1e), X(4), X(5), fits)
	VBLENDVPS(fits, X(2), X(0), X(0))
	VBLENDVPS(fits, X(3), X(1), X(1))
	VDIVPS(X(1), X(0), X(0))
	VMULPS(k.scales, X(0), X(0))
	VPAND(k.keeps, X(0), X(0))
	VPOR(k.lost, X(0), X(0))
	VMOVUPS(X(0), k.scales)
	VMOVUPS(c.one, X(4))
	VBLENDVPS(fits, c.narrower, X(4), X(4))
	VMOVUPS(X(4), k.narrows)
}

// integers writes the blocks.
func (k *quantizeQ8) integers(c *quantConstants) {
	ones := Y(13)
	VMOVDQU(c.ones, ones)
	for b := range 4 {
		VBROADCASTSS(k.invs.Offset(4*b), Y(8))
		VBROADCASTSS(k.narrows.Offset(4*b), Y(9))
		for i := range 4 {
			VMULPS(k.x(b, i), Y(8), Y(4+i))
			VMULPS(Y(9), Y(4+i), Y(4+i))
			VCVTPS2DQ(Y(4+i), Y(4+i))
		}
		VPACKSSDW(Y(5), Y(4), Y(4))
		VPACKSSDW(Y(7), Y(6), Y(6))
		VPACKSSWB(Y(6), Y(4), Y(4))
		VMOVDQU(packOrder, Y(5))
		VPERMD(Y(4), Y(5), Y(4))
		VPBROADCASTD(k.keeps.Offset(4*b), Y(5))
		VPAND(Y(5), Y(4), Y(4))
		VMOVDQU(Y(4), k.to(b, 0))
		VPMADDUBSW(Y(4), ones, Y(4)) // the sum: pairs to 16 bits, pairs of those to 32, and across
		VPMADDWD(c.words, Y(4), Y(b))
	}
	VPHADDD(Y(1), Y(0), Y(0))
	VPHADDD(Y(3), Y(2), Y(2))
	VPHADDD(Y(2), Y(0), Y(0))
	VEXTRACTI128(U8(1), Y(0), X(1))
	VPADDD(X(1), X(0), X(0))
	VPXOR(X(1), X(1), X(1))
	VPSUBD(X(0), X(1), X(0))
	VMOVUPS(k.scales, X(1))
	VCVTDQ2PS(X(0), X(2))
	VMULPS(X(1), X(2), X(2))
	VPSLLD(U8(7), X(0), X(0))
	for b := range 4 {
		VPEXTRD(U8(b), X(0), k.to(b, q8Start))
		VPEXTRD(U8(b), X(1), k.to(b, q8Scale))
		VPEXTRD(U8(b), X(2), k.to(b, q8Sum))
	}
}

// quantizeK is quantizeRow for the K types. The largest magnitude is found on the bits as integers, which
// puts infinities and NaNs on top.
func quantizeK() {
	function("quantizeKAVX2", "(dst *byte, src *float32, n int)",
		"quantizeKAVX2 quantises n f32, a multiple of 128, to groups of int8.")
	dst := reg.RDI
	src := reg.RSI
	n := reg.RCX
	q, m := reg.RDX, reg.RBX // blocks in the group; elements
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("n"), n)
	abs := Y(15)
	ones := Y(14)
	order := Y(13)
	words := Y(12)
	VPCMPEQD(abs, abs, abs)
	VPSRLW(U8(15), abs, words)
	VPSRLD(U8(1), abs, abs)
	VPCMPEQD(ones, ones, ones)
	VPABSB(ones, ones)
	VMOVDQU(packOrder, order)

	Label("group")
	MOVL(U32(kBlocks), q.As32())
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
	// of the halves, and all
	VPHADDD(reg.X5, reg.X4, reg.X4)
	VPHADDD(reg.X4, reg.X4, reg.X4)
	VPXOR(reg.X5, reg.X5, reg.X5)
	VPSUBD(reg.X4, reg.X5, reg.X4)
	VPHADDD(reg.X4, reg.X4, reg.X5)
	VCVTDQ2PS(reg.X5, reg.X5)
	VPSLLD(U8(5), reg.X4, reg.X4)
	VMOVQ(reg.X4, Mem{Base: dst, Disp: kHalves})
	VMOVD(reg.X5, Mem{Base: dst, Disp: kSum})
	ADDQ(imm(128), src)
	ADDQ(imm(kX), dst)
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
