package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The fields of the Go struct fewTile, by offset (kernels_amd64.go checks them).
const (
	fewW     = 0  // four panels
	fewNext  = 32 // what to fetch meanwhile
	fewX     = 64
	fewXS    = 72
	fewSteps = 80
	fewOut   = 88
	fewOutS  = 96
	fewApart = 104 // bytes from a panel's results to the next's
	fewAdd   = 112
	fewRows  = 120
)

// fewBF16 emits the product of one or two rows of pairs and four panels in the caller's memory. The
// chains of one panel would wait for each other: with two rows they are four.
func fewBF16() {
	const panels, most = 4, 2
	function("mulFewBF16AVX512BF16", "(t *fewTile)", "mulFewBF16AVX512BF16 multiplies four bf16 panels by one or two rows of pairs of bf16.")
	Load(Param("t"), args)
	ws := []reg.GPPhysical{reg.RSI, reg.R8, reg.R9, reg.R10}
	next := []reg.GPPhysical{reg.R11, reg.R12, reg.R13, reg.RBX}
	x := reg.RDI
	xs := reg.RDX
	out := reg.RAX
	outs := reg.R14
	for p := range panels {
		arg(fewW+8*p, ws[p])
		arg(fewNext+8*p, next[p])
	}
	arg(fewX, x)
	arg(fewXS, xs)
	arg(fewSteps, n)
	acc := func(row, p, v int) reg.VecPhysical { return Z((row*panels+p)*vecs + v) }
	weight := func(p, v int) reg.VecPhysical { return Z(most*panels*vecs + p*vecs + v) }
	results := func(rows int, f func(m Mem, r reg.VecPhysical)) {
		arg(fewOut, out)
		for p := range panels {
			arg(fewOutS, outs)
			for row := range rows {
				for v := range vecs {
					m := Mem{Base: out, Disp: v * 64}
					if row > 0 {
						m.Index, m.Scale = outs, 1
					}
					f(m, acc(row, p, v))
				}
			}
			if p < panels-1 {
				arg(fewApart, outs)
				ADDQ(outs, out)
			}
		}
	}
	arg(fewRows, out)
	CMPQ(out, imm(1))
	JEQ(LabelRef("rows1"))
	for rows := most; rows > 0; rows-- {
		lab := func(s string) string { return fmt.Sprintf("%s%d", s, rows) }
		Label(lab("rows"))
		arg(fewAdd, out)
		TESTQ(out, out)
		JZ(LabelRef(lab("zero")))
		results(rows, func(m Mem, r reg.VecPhysical) { VMOVUPS(m, r) })
		JMP(LabelRef(lab("step")))
		Label(lab("zero"))
		for row := range rows {
			for p := range panels {
				for v := range vecs {
					VPXORD(acc(row, p, v), acc(row, p, v), acc(row, p, v))
				}
			}
		}
		Label(lab("step"))
		for p := range panels {
			for v := range vecs {
				VMOVUPS(Mem{Base: ws[p], Disp: v * 64}, weight(p, v))
				PREFETCHT0(Mem{Base: next[p], Disp: v * 64})
			}
		}
		for row := range rows {
			b := Z(31 - row)
			m := Mem{Base: x}
			if row > 0 {
				m.Index, m.Scale = xs, 1
			}
			VPBROADCASTD(m, b)
			for p := range panels {
				for v := range vecs {
					vdpbf16ps(weight(p, v), b, acc(row, p, v))
				}
			}
		}
		for p := range panels {
			ADDQ(imm(accRow), ws[p]) // a step of a panel is as long as a row of sums
			ADDQ(imm(accRow), next[p])
		}
		ADDQ(imm(4), x)
		DECQ(n)
		JNZ(LabelRef(lab("step")))
		results(rows, func(m Mem, r reg.VecPhysical) { VMOVUPS(r, m) })
		VZEROUPPER()
		RET()
	}
}
