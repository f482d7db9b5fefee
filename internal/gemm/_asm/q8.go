package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The Q8_0 kernels. A step is a block of 32 elements; a row of activations is blocks { 32 int8, int32 start of the sum,
// f32 scale } (input.go).
const (
	q8Scales = 64 // bytes of scales before a packed block's weights
	q8Block  = q8Scales + 32*32
	q8X      = 32 + 8
	q8Start  = 32
	q8Scale  = 36
)

// q8AVX512 keeps all of its rows in registers: the integer sums of a block and the whole sums. A block costs the multiply
// unit 8 VPDPBUSD, the product of the two scales and 1 FMA per vector of outputs: 80 % of the unit's peak is left for the products.
// (Conversions and prefetches go elsewhere and are free.) Four activations are broadcast
// once for both vectors: where the unit takes two products a cycle (Zen 5), loads would
// otherwise be what there is too little of.
func q8AVX512() {
	k := &kernel{wStep: q8Block, xStep: q8X, name: "mulQ8AVX512", doc: "mulQ8AVX512 multiplies a Q8_0 panel by blocks of int8.", maxRows: q8Rows, zmm: true}
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		Label(fmt.Sprintf("rows%d", r))
		k.resume(r, q8Whole)
		TESTQ(dense, dense)
		JZ(LabelRef(fmt.Sprintf("sparse%d", r)))
		k.q8Body(r, fmt.Sprintf("dense%d", r), []int{3, 2, 2, 2, 2, 2, 2, 2})
		k.q8Body(r, fmt.Sprintf("sparse%d", r), []int{1, 0, 0, 1, 0, 0, 1, 0})
	}
}

const q8Rows = 5 // more leave too few registers for activations

func q8Sum(row, v int) reg.VecPhysical   { return Z(row*vecs + v) }
func q8Whole(row, v int) reg.VecPhysical { return Z((q8Rows+row)*vecs + v) }

// q8Body is the body for r rows, with so many prefetches in each eighth of a block.
func (k *kernel) q8Body(r int, name string, prefetches []int) {
	const free = 2 * q8Rows * vecs
	w0, w1 := Z(30), Z(31)
	scale := []reg.VecPhysical{w0, w1} // once the block is multiplied

	Label(name)
	for row := range r {
		VPBROADCASTD(x(row, q8Start), q8Sum(row, 0))
		VMOVDQA64(q8Sum(row, 0), q8Sum(row, 1))
	}
	for i, count := range prefetches {
		prefetch(count)
		VMOVUPS(Mem{Base: w, Disp: q8Scales + i*128}, w0)
		VMOVUPS(Mem{Base: w, Disp: q8Scales + i*128 + 64}, w1)
		for row := range r {
			b := Z(free + row%(30-free))
			VPBROADCASTD(x(row, i*4), b)
			VPDPBUSD(b, w0, q8Sum(row, 0))
			VPDPBUSD(b, w1, q8Sum(row, 1))
		}
	}
	VCVTPH2PS(Mem{Base: w}, scale[0])
	VCVTPH2PS(Mem{Base: w, Disp: 32}, scale[1])
	for row := range r {
		d, t := Z(free+2*row%(30-free)), Z(free+(2*row+1)%(30-free))
		VBROADCASTSS(x(row, q8Scale), d)
		VMULPS(scale[1], d, t)
		VMULPS(scale[0], d, d)
		for v, f := range []reg.VecPhysical{d, t} {
			VCVTDQ2PS(q8Sum(row, v), q8Sum(row, v))
			VFMADD231PS(f, q8Sum(row, v), q8Whole(row, v))
		}
	}
	k.advance(r, 1)
	DECQ(n)
	JNZ(LabelRef(name))
	k.store(r, q8Whole)
}

// q8AVX2 takes a quarter of a panel: 8 outputs in a register, 6 rows. VPMADDUBSW multiplies
// u8 by s8 and adds pairs in 16 bits, saturating, so it is given |w| and x·sign(w): at most
// 2·128·127, which fits. The sums are then of the signed weights and start from zero.
func q8AVX2() {
	k := &kernel{wStep: q8Block, xStep: q8X, name: "mulQ8AVX2", doc: "mulQ8AVX2 multiplies a quarter of a Q8_0 panel by blocks of int8.", maxRows: 6}
	flip := GLOBL("flip", RODATA|NOPTR)
	for i := range 8 {
		DATA(i*4, U32(0x80808080))
	}
	ones := Y(12)
	scales := dense
	k.setup = func() {
		VPCMPEQD(ones, ones, ones)
		VPSRLW(U8(15), ones, ones)
		arg(tileScale, scales)
	}
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		lab := func(s string) string { return fmt.Sprintf("%s%d", s, r) }
		sum := func(row int) reg.VecPhysical { return Y(row) }
		whole := func(row int) reg.VecPhysical { return Y(k.maxRows + row) }
		sign, abs, b := Y(13), Y(14), Y(15)

		Label(lab("rows"))
		arg(tileFirst, tmp)
		TESTQ(tmp, tmp)
		JNZ(LabelRef(lab("zero")))
		for row := range r {
			VMOVUPS(k.accMem(row, 0), whole(row))
		}
		JMP(LabelRef(lab("block")))
		Label(lab("zero"))
		for row := range r {
			k.zero(whole(row))
		}

		Label(lab("block"))
		for row := range r {
			k.zero(sum(row))
		}
		for i := range 8 {
			if i%2 == 0 {
				prefetch(1)
			}
			VMOVUPS(Mem{Base: w, Disp: q8Scales + i*128}, sign)
			VPXOR(flip, sign, sign)
			VPABSB(sign, abs)
			for row := range r {
				VPBROADCASTD(x(row, i*4), b)
				VPSIGNB(sign, b, b)
				VPMADDUBSW(b, abs, b)
				VPMADDWD(ones, b, b)
				VPADDD(b, sum(row), sum(row))
			}
		}
		VCVTPH2PS(Mem{Base: scales}, abs)
		for row := range r {
			VBROADCASTSS(x(row, q8Scale), b)
			VMULPS(abs, b, b)
			VCVTDQ2PS(sum(row), sum(row))
			VFMADD231PS(b, sum(row), whole(row))
		}
		k.advance(r, 1)
		ADDQ(imm(q8Block), scales)
		DECQ(n)
		JNZ(LabelRef(lab("block")))

		arg(tileOut, acc)
		arg(tileOutS, tmp)
		for row := range r {
			VMOVUPS(whole(row), Mem{Base: acc})
			if row < r-1 {
				ADDQ(tmp, acc)
			}
		}
		VZEROUPPER()
		RET()
	}
}
