package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// kvKernels emits conversions of a cache of Q8_0, and the fold of ranges of attention. Lengths are
// multiples of the vectors.
func kvKernels(g *gen) {
	// Two neighbouring elements are one lane: x in the lower half of dst's, the next in the higher.
	g.fn("intsToBF16", "func(dst, x []byte)")
	dst, x := g.base("dst"), g.base("x")
	n := g.Load(g.Param("x").Len(), g.GP64())
	g.SHRQ(operand.U8(1), n)
	g.whole(n, func(i reg.Register) {
		for h := range g.vec() {
			low, high := g.reg(), g.reg()
			g.VPMOVZXWD(operand.Mem{Base: x, Index: i, Scale: 2, Disp: 16 * h}, high)
			g.VPSLLD(operand.U8(24), high, low)
			g.VPSLLD(operand.U8(16), high, high)
			g.VPSRAD(operand.U8(24), low, low)
			g.VPSRAD(operand.U8(24), high, high)
			g.VCVTDQ2PS(low, low)
			g.VCVTDQ2PS(high, high)
			g.VPSRLD(operand.U8(16), low, low) // the lower halves of such small integers are zero
			g.VORPS(high, low, low)
			g.VMOVUPS(low, operand.Mem{Base: dst, Index: i, Scale: 4, Disp: 32 * h})
		}
	})
	g.ret()

	g.fn("blendRows", "func(dst, x, a, b []float32, cols int)")
	dst, x = g.base("dst"), g.base("x")
	as, bs := g.base("a"), g.base("b")
	rows, cols := g.Load(g.Param("a").Len(), g.GP64()), g.Load(g.Param("cols"), g.GP64())
	loop, done := g.label(), g.label()
	g.TESTQ(rows, rows)
	g.JZ(operand.LabelRef(done))
	g.Label(loop)
	ra, rb := g.reg(), g.reg()
	g.VBROADCASTSS(operand.Mem{Base: as}, ra)
	g.VBROADCASTSS(operand.Mem{Base: bs}, rb)
	g.whole(cols, func(i reg.Register) {
		d, v := g.load(ptr{dst, i}), g.load(ptr{x, i})
		g.mul(g.same(ra), d, d)
		g.fma231(v, g.same(rb), d)
		g.store(d, ptr{dst, i})
	})
	g.LEAQ(operand.Mem{Base: dst, Index: cols, Scale: 4}, dst)
	g.LEAQ(operand.Mem{Base: x, Index: cols, Scale: 4}, x)
	g.ADDQ(operand.I8(4), as)
	g.ADDQ(operand.I8(4), bs)
	g.DECQ(rows)
	g.JNZ(operand.LabelRef(loop))
	g.Label(done)
	g.ret()

	g.fn("mulF16", "func(dst, x []float32, h []byte)")
	dst, x = g.base("dst"), g.base("x")
	hs := g.base("h")
	g.whole(g.Load(g.Param("x").Len(), g.GP64()), func(i reg.Register) {
		v := g.load(ptr{x, i})
		for h := range v {
			s := g.reg()
			g.VCVTPH2PS(operand.Mem{Base: hs, Index: i, Scale: 2, Disp: 16 * h}, s)
			g.VMULPS(s, v[h], v[h])
		}
		g.store(v, ptr{dst, i})
	})
	g.ret()
}
