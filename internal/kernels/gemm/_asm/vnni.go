package main

import (
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
	m := number(x)
	v := number(w)
	r := number(acc)
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
