package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx512 keeps the sums of its rows' blocks and groups in registers, and the masks; of few rows the
// whole sums too. A block costs the multiply unit 8 VPDPBUSD and 2 FMA per vector of outputs, a
// group one more: 78 % of its peak is left for the products. The more rows, the fewer operations on
// weights there are for each.
func (k *kQuant) avx512(low, upper Mem) {
	lowMask, upperMask := Z(24), Z(25)
	k.setup = func() {
		if !k.wide {
			VMOVUPS(low, lowMask)
			if k.high() > 0 {
				VMOVUPS(upper, upperMask)
			}
		}
	}
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		Label(fmt.Sprintf("rows%d", r))
		if r > kKept {
			begun := fmt.Sprintf("begun%d", r)
			k.beginWhole(r, begun, Z(31))
			Label(begun)
		} else {
			k.resume(r, func(row, v int) reg.VecPhysical { return kWhole(r, row, v) })
		}
		k.rows512(r, fmt.Sprintf("step%d", r), lowMask, upperMask)
	}
	k.end()
}

// kWhole is the whole sum of one of r rows.
func kWhole(r, row, v int) reg.VecPhysical { return Z((2*r+row)*vecs + v) }

func (k *kQuant) rows512(r int, name string, low, upper Op) {
	sum := func(row, v int) reg.VecPhysical { return Z(row*vecs + v) }
	part := func(row, v int) reg.VecPhysical { return Z((r+row)*vecs + v) }
	w0, w1 := Z(30), Z(31)
	head := tmp

	Label(name)
	MOVQ(w, head)
	ADDQ(imm(k.head()), w)
	XORL(args.As32(), args.As32()) // 0 in the first group, 1 in the second: the arguments are loaded
	Label(name + "group")
	each(r, func(row, v int) { k.zero(part(row, v)) })
	MOVL(U32(kBlocks), left.As32())

	Label(name + "block")
	for i := range kTurns {
		if i == 0 || k.halves() && i == kTurns/2 {
			each(r, func(row, v int) { k.begins(row, i/4, sum(row, v)) })
		}
		prefetchTurn(name, i, kSparse, map[int]int{2: 6, 3: 8, 4: 10, 5: 12, 6: 14}[k.bits])
		k.elements(i, low, upper, nil, w0, w1)
		for row := range r {
			b := Z(26 + row%2)
			VPBROADCASTD(x(row, i*4), b)
			VPDPBUSD(b, w0, sum(row, 0))
			VPDPBUSD(b, w1, sum(row, 1))
		}
		if k.halves() && i%4 == 3 {
			k.scale(r, i/4, w, head, w0, w1, sum, part)
			if k.bits == 2 {
				k.minimums512(r, i/4, head, w0, w1, part)
			}
		}
	}
	if !k.halves() {
		k.scale(r, 0, w, head, w0, w1, sum, part)
		for v := range vecs { // the minimums
			k.factor(1, v, w, head, w0, w1)
			for row := range r {
				VFMADD231PS_BCST(x(row, kSum), w0, part(row, v))
			}
		}
	}
	ADDQ(imm(k.block()), w)
	skip(r, kX)
	DECQ(left)
	JNZ(LabelRef(name + "block"))

	if r > kKept {
		k.addWhole(r, func(row, v int) Op { return part(row, v) }, Z(26), Z(27))
	} else {
		each(r, func(row, v int) { VFMADD231PS_BCST(x(row, 0), part(row, v), kWhole(r, row, v)) })
	}
	skip(r, 4)
	XORL(U8(1), args.As32())
	JNZ(LabelRef(name + "group"))
	DECQ(n)
	JNZ(LabelRef(name))
	if r > kKept {
		k.storeWhole(r, w0)
		return
	}
	Load(Param("t"), args)
	k.store(r, func(row, v int) reg.VecPhysical { return kWhole(r, row, v) })
}

// minimums512 adds those of Q2_K's half h, times its −Σ, to the parts.
func (k *kQuant) minimums512(r, h int, head reg.Register, w0, w1 reg.VecPhysical, part func(row, v int) reg.VecPhysical) {
	k.factor(2+h, 0, w, head, w0, Z(26))
	k.factor(2+h, 1, w, head, w1, Z(26))
	for row := range r {
		b := Z(26 + row%2)
		VCVTDQ2PS_BCST(x(row, kHalves+4*h), b)
		VFMADD231PS(b, w0, part(row, 0))
		VFMADD231PS(b, w1, part(row, 1))
	}
}

// begins starts the sums of a block or of its half h: of Q6_K and Q3_K from −32·Σ and −4·Σ, as elements are packed
// without what is subtracted from them.
func (k *kQuant) begins(row, h int, sum reg.VecPhysical) {
	switch k.bits {
	case 3, 6:
		VPBROADCASTD(x(row, kHalves+4*h), sum)
		if k.bits == 3 {
			VPSRAD(U8(3), sum, sum)
		}
	default:
		k.zero(sum)
	}
}
