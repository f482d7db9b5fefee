package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx512 keeps all of its rows in registers, as q8AVX512 does, and the masks. A block costs the
// multiply unit 8 VPDPBUSD and 2 FMA per vector of outputs, a group one more: 78 % of its peak is left for the products.
func (k *kQuant) avx512(low, upper Mem) {
	lowMask, upperMask := Z(24), Z(25)
	k.setup = func() {
		if !k.wide {
			VMOVUPS(low, lowMask)
			if k.bits > 4 {
				VMOVUPS(upper, upperMask)
			}
		}
	}
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		Label(fmt.Sprintf("rows%d", r))
		k.resume(r, k.whole)
		k.rows512(r, fmt.Sprintf("step%d", r), lowMask, upperMask)
	}
}

func (k *kQuant) sum(row, v int) reg.VecPhysical   { return Z(row*vecs + v) }
func (k *kQuant) part(row, v int) reg.VecPhysical  { return Z(k.maxRows*vecs + row*vecs + v) }
func (k *kQuant) whole(row, v int) reg.VecPhysical { return Z(2*k.maxRows*vecs + row*vecs + v) }

func (k *kQuant) rows512(r int, name string, low, upper Op) {
	w0, w1 := Z(30), Z(31)
	head := tmp

	Label(name)
	MOVQ(w, head)
	ADDQ(imm(k.head()), w)
	XORL(args.As32(), args.As32()) // 0 in the first group, 1 in the second: the arguments are loaded
	Label(name + "group")
	each(r, func(row, v int) { k.zero(k.part(row, v)) })
	MOVL(U32(kBlocks), left.As32())

	Label(name + "block")
	for i := range kTurns {
		if i == 0 || k.bits == 6 && i == kTurns/2 {
			each(r, func(row, v int) {
				if k.bits == 6 {
					VPBROADCASTD(x(row, kHalves+i), k.sum(row, v))
				} else {
					k.zero(k.sum(row, v))
				}
			})
		}
		prefetchTurn(name, i, kSparse, map[int]int{4: 10, 5: 12, 6: 14}[k.bits])
		k.elements(i, low, upper, nil, w0, w1)
		for row := range r {
			b := Z(26 + row%2)
			VPBROADCASTD(x(row, i*4), b)
			VPDPBUSD(b, w0, k.sum(row, 0))
			VPDPBUSD(b, w1, k.sum(row, 1))
		}
		if k.bits == 6 && i%4 == 3 {
			k.scale(r, i/4, w, head, w0, w1, k.sum, k.part)
		}
	}
	if k.bits < 6 {
		k.scale(r, 0, w, head, w0, w1, k.sum, k.part)
		for v := range vecs { // the minimums
			k.factor(1, v, w, head, w0, w1)
			for row := range r {
				VFMADD231PS_BCST(x(row, kSum), w0, k.part(row, v))
			}
		}
	}
	ADDQ(imm(k.block()), w)
	ADDQ(imm(kX), x0)
	DECQ(left)
	JNZ(LabelRef(name + "block"))

	for row := range r {
		for v := range vecs {
			VFMADD231PS_BCST(x(row, 0), k.part(row, v), k.whole(row, v))
		}
	}
	ADDQ(imm(4), x0)
	XORL(U8(1), args.As32())
	JNZ(LabelRef(name + "group"))
	DECQ(n)
	JNZ(LabelRef(name))
	Load(Param("t"), args)
	k.store(r, k.whole)
}
