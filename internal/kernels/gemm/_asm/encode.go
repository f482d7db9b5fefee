package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vdpbf16ps emits VDPBF16PS m, v, d (Go's operand order), which neither avo nor Go's assembler knows:
//
//	EVEX.512.F3.0F38.W0 52 /r   d.f32 += v.odd·m.odd, then += v.even·m.even
//
// The prefix stores the upper bits of the register numbers inverted.
func vdpbf16ps(m, v, d reg.VecPhysical) {
	mi := byte(m.PhysicalIndex())
	vi := byte(v.PhysicalIndex())
	di := byte(d.PhysicalIndex())
	raw(
		0x62,
		not(di, 3)<<7|not(mi, 4)<<6|not(mi, 3)<<5|not(di, 4)<<4|0x02,
		(^vi&15)<<3|1<<2|0x02,
		0x40|not(vi, 4)<<3,
		0x52,
		0xc0|di&7<<3|mi&7,
	)
}

// vcvtneps2bf16 emits VCVTNEPS2BF16 m, d, unknown too:
//
//	EVEX.512.F3.0F38.W0 72 /r   16 f32 to bf16, ties to even, subnormals to zero
func vcvtneps2bf16(m, d reg.VecPhysical) {
	mi, di := byte(m.PhysicalIndex()), byte(d.PhysicalIndex())
	raw(
		0x62,
		not(di, 3)<<7|not(mi, 4)<<6|not(mi, 3)<<5|not(di, 4)<<4|0x02,
		0x0f<<3|1<<2|0x02,
		0x48,
		0x72,
		0xc0|di&7<<3|mi&7,
	)
}

// not is the inverse of bit i.
func not(b byte, i uint) byte { return ^b >> i & 1 }

// raw emits the bytes of one instruction.
func raw(b ...byte) {
	data := func(op string, c operand.Op) {
		build.Instruction(&ir.Instruction{Opcode: op, Operands: []operand.Op{c}})
	}
	for ; len(b) >= 4; b = b[4:] {
		data("LONG", operand.U32(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24))
	}
	if len(b) >= 2 {
		data("WORD", operand.U16(uint16(b[0])|uint16(b[1])<<8))
		b = b[2:]
	}
	if len(b) == 1 {
		data("BYTE", operand.U8(b[0]))
	}
}

// vcvtne2ps2bf16 emits VCVTNE2PS2BF16 lo, hi, d, unknown too:
//
//	EVEX.512.F2.0F38.W0 72 /r   16 f32 of lo, then 16 of hi, to bf16, ties to even, subnormals to zero
func vcvtne2ps2bf16(lo, hi, d reg.VecPhysical) {
	li := byte(lo.PhysicalIndex())
	hj := byte(hi.PhysicalIndex())
	di := byte(d.PhysicalIndex())
	raw(
		0x62,
		not(di, 3)<<7|not(li, 4)<<6|not(li, 3)<<5|not(di, 4)<<4|0x02,
		(^hj&15)<<3|1<<2|0x03,
		0x40|not(hj, 4)<<3,
		0x72,
		0xc0|di&7<<3|li&7,
	)
}
