package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// kvKernels emits conversions of a cache of Q8_0. Lengths are multiples of the vectors.
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
