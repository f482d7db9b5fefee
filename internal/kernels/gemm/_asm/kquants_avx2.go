package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx2 takes half a panel: 16 outputs. VPMADDUBSW adds pairs in 16 bits,
// where spread turns fit, before they are widened; VPDPBUSD, where there is AVX-VNNI, fours in 32.
// The whole sums stay in memory: a group touches them once. Of few rows a group's sums are in registers. Of more they
// are in memory too, which a block touches once, so that more rows share the work of unpacking the elements.
func (k *kQuant) avx2(low, upper, ones Mem) {
	w0 := Y(12)
	w1 := Y(13)
	b := Y(14)
	t := Y(15)
	head := reg.R8
	scales := dense
	second := args
	if k.wide {
		scales = w // factors, of 4 bytes like the elements
	}

	k.setup = func() {
		if k.wide {
			return
		}
		arg(tileScale, head)
		// Of a part's outputs elements are 4 bytes, d 2 and scales 1.
		MOVQ(head, scales)
		SUBQ(w, scales)
		SARQ(U8(1), scales)
		ADDQ(head, scales)
		ADDQ(imm(k.head()), w)
		ADDQ(imm(k.head()), scales)
	}
	var parts Mem
	k.begin()
	if k.maxRows > k.inRegisters {
		parts = AllocLocal(k.maxRows * vecs * 32)
	}
	for r := 1; r <= k.maxRows; r++ {
		lab := func(s string) string { return fmt.Sprintf("%s%d", s, r) }
		sum := registers(r, 0)  // of 16 bits, then of 32
		wide := registers(r, 1) // where 16 do not do for a block: of 32 bits
		sums, part := wide, registers(r, 2)
		if k.spread == kTurns || k.vnni {
			sums, part = sum, registers(r, 1)
		}
		partMem := func(row, v int) Mem { return parts.Offset((row*vecs + v) * 32) }
		kept := r <= k.inRegisters

		Label(lab("rows"))
		k.beginWhole(r, lab("step"), t)
		Label(lab("step"))
		XORL(second.As32(), second.As32())
		Label(lab("group"))
		if kept {
			each(r, func(row, v int) { k.zero(part(row, v)) })
		} else {
			k.zero(t)
			each(r, func(row, v int) { VMOVUPS(t, partMem(row, v)) })
		}
		MOVL(U32(kBlocks), left.As32())

		Label(lab("block"))
		prefetch(map[int]int{2: 3, 3: 4, 4: 5, 5: 6, 6: 7}[k.bits])
		scale := func(h int) {
			for v := range vecs {
				k.factor(h, v, scales, head, w0, w1)
				for row := range r {
					VCVTDQ2PS(sums(row, v), sums(row, v))
					if kept {
						VFMADD231PS(w0, sums(row, v), part(row, v))
					} else {
						VFMADD213PS(partMem(row, v), w0, sums(row, v))
					}
				}
			}
			if k.bits != 3 && k.bits != 6 { // the minimums
				to := part
				if !kept {
					to = sums
				}
				least := 1
				if k.bits == 2 {
					least = 2 + h
				}
				for v := range vecs {
					k.factor(least, v, scales, head, w0, w1)
					for row := range r {
						if k.bits == 2 {
							VPBROADCASTD(x(row, kHalves+4*h), b)
							VCVTDQ2PS(b, b)
						} else {
							VBROADCASTSS(x(row, kSum), b)
						}
						VFMADD231PS(b, w0, to(row, v))
					}
				}
			}
			if !kept {
				each(r, func(row, v int) { VMOVUPS(sums(row, v), partMem(row, v)) })
			}
		}
		for i := range kTurns {
			half := kTurns / 2
			if k.vnni {
				k.turnVNNI(r, i, low, upper, sum, w0, w1, b, t)
			} else {
				k.turnAVX2(r, i, low, upper, ones, sum, wide, w0, w1, b, t)
			}
			if !k.halves() || i%half != half-1 {
				continue
			}
			if !k.vnni && k.bits != 2 {
				for row := range r {
					k.begins(row, i/half, b)
					for v := range vecs {
						VPADDD(b, wide(row, v), wide(row, v))
					}
				}
			}
			scale(i / half)
		}
		if !k.halves() {
			scale(0)
		}
		ADDQ(imm(k.block()), w)
		if !k.wide {
			ADDQ(imm(k.block()), scales)
		}
		skip(r, kX)
		DECQ(left)
		JNZ(LabelRef(lab("block")))

		k.addWhole(r, func(row, v int) Op {
			if kept {
				return part(row, v)
			}
			return partMem(row, v)
		}, b, t)
		skip(r, 4)
		XORL(U8(1), second.As32())
		JNZ(LabelRef(lab("group")))
		if !k.wide {
			ADDQ(imm(8*k.block()+k.head()), head)
			ADDQ(imm(k.head()), w)
			ADDQ(imm(k.head()), scales)
		}
		DECQ(n)
		JNZ(LabelRef(lab("step")))

		k.storeWhole(r, t)
	}
	k.end()
}

// registers are those of a number among equal parts of the sums of r rows.
func registers(r, number int) func(row, v int) reg.VecPhysical {
	return func(row, v int) reg.VecPhysical { return Y((number*r+row)*vecs + v) }
}

// turnAVX2 adds the products of turn i to sums of 16 bits, and those to sums of 32 where they are full.
func (k *kQuant) turnAVX2(r, i int, low, upper, ones Mem, sum, wide func(row, v int) reg.VecPhysical, w0, w1,
	b, t reg.VecPhysical) {
	half := kTurns / 2
	k.elements(i, low, upper, t, w0, w1)
	for row := range r {
		VPBROADCASTD(x(row, i*4), b)
		for v, wv := range []reg.VecPhysical{w0, w1} {
			if i%k.spread == 0 {
				VPMADDUBSW(b, wv, sum(row, v))
				continue
			}
			VPMADDUBSW(b, wv, t)
			VPADDW(t, sum(row, v), sum(row, v))
		}
	}
	if i%k.spread != k.spread-1 {
		return
	}
	switch first := i < k.spread || k.halves() && i < half+k.spread && i >= half; {
	case k.spread == kTurns:
		each(r, func(row, v int) { VPMADDWD(ones, sum(row, v), sum(row, v)) })
	case first:
		each(r, func(row, v int) { VPMADDWD(ones, sum(row, v), wide(row, v)) })
	default:
		each(r, func(row, v int) {
			VPMADDWD(ones, sum(row, v), sum(row, v))
			VPADDD(sum(row, v), wide(row, v), wide(row, v))
		})
	}
}

// turnVNNI multiplies turn i, whose sums begin with the block or its half.
func (k *kQuant) turnVNNI(r, i int, low, upper Mem, sum func(row, v int) reg.VecPhysical, w0, w1, b, t reg.VecPhysical) {
	if i == 0 || k.halves() && i == kTurns/2 {
		each(r, func(row, v int) { k.begins(row, i/4, sum(row, v)) })
	}
	k.dotVNNI(r, i, low, upper, sum, w0, w1, b, t)
}

// dotVNNI adds the products of turn i to the sums.
func (k *kQuant) dotVNNI(r, i int, low, upper Mem, sum func(row, v int) reg.VecPhysical, w0, w1, b, t reg.VecPhysical) {
	k.elements(i, low, upper, t, w0, w1)
	for row := range r {
		VPBROADCASTD(x(row, i*4), b)
		vpdpbusd(b, w0, sum(row, 0))
		vpdpbusd(b, w1, sum(row, 1))
	}
}
