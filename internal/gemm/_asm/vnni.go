package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// AVX-VNNI is VPDPBUSD without AVX-512, on 16 registers of 256 bits. Go's assembler knows it in AVX-512's
// encoding alone, so it is written as bytes.

// vpdpbusd adds to acc, per lane of 32 bits, the products of four bytes: those of w unsigned, those of x signed.
// VEX.256.66.0F38.W0 50 /r.
func vpdpbusd(x, w, acc reg.VecPhysical) {
	m, v, r := number(x), number(w), number(acc)
	for _, b := range []int{
		0xc4,
		(^r>>3&1)<<7 | 1<<6 | (^m>>3&1)<<5 | 2,
		(^v&15)<<3 | 1<<2 | 1,
		0x50,
		3<<6 | r&7<<3 | m&7,
	} {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{Imm(uint64(b))}})
	}
}

func number(r reg.VecPhysical) int { return int(r.PhysicalIndex()) }

// vnniRows is how many rows' sums and parts leave registers for weights and activations.
const vnniRows = 3

// q8AVXVNNI takes half a panel: 16 outputs.
func q8AVXVNNI() {
	k := &kernel{wStep: q8Block, xStep: q8X, name: "mulQ8AVXVNNI", doc: "mulQ8AVXVNNI multiplies half a Q8_0 panel by blocks of int8.", maxRows: vnniRows}
	sum := func(row, v int) reg.VecPhysical { return Y(row*vecs + v) }
	whole := func(row, v int) reg.VecPhysical { return Y((k.maxRows+row)*vecs + v) }
	w0, w1, b, t := Y(12), Y(13), Y(14), Y(15)
	scales := dense
	k.setup = func() { arg(tileScale, scales) }
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		lab := func(s string) string { return fmt.Sprintf("%s%d", s, r) }
		Label(lab("rows"))
		k.resume(r, whole)
		Label(lab("block"))
		for row := range r {
			VPBROADCASTD(x(row, q8Start), sum(row, 0))
			VMOVDQA(sum(row, 0), sum(row, 1))
		}
		for i := range 8 {
			prefetch(1)
			VMOVDQU(Mem{Base: w, Disp: q8Scales + i*128}, w0)
			VMOVDQU(Mem{Base: w, Disp: q8Scales + i*128 + 32}, w1)
			for row := range r {
				VPBROADCASTD(x(row, i*4), b)
				vpdpbusd(b, w0, sum(row, 0))
				vpdpbusd(b, w1, sum(row, 1))
			}
		}
		VCVTPH2PS(Mem{Base: scales}, w0)
		VCVTPH2PS(Mem{Base: scales, Disp: 16}, w1)
		for row := range r {
			VBROADCASTSS(x(row, q8Scale), b)
			for v, scale := range []reg.VecPhysical{w0, w1} {
				VMULPS(scale, b, t)
				VCVTDQ2PS(sum(row, v), sum(row, v))
				VFMADD231PS(t, sum(row, v), whole(row, v))
			}
		}
		k.advance(r, 1)
		ADDQ(imm(q8Block), scales)
		DECQ(n)
		JNZ(LabelRef(lab("block")))
		k.store(r, whole)
	}
}
