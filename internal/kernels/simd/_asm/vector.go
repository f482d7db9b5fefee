package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func vectorKernels(g *gen) {
	g.fn("add", "func(dst, x []float32)")
	dst, x := g.base("dst"), g.base("x")
	g.each(g.Load(g.Param("dst").Len(), g.GP64()), func(i reg.Register) {
		d := g.load(ptr{dst, i})
		g.add(g.load(ptr{x, i}), d, d)
		g.store(d, ptr{dst, i})
	})
	g.ret()

	g.fn("scale", "func(dst []float32, a float32)")
	dst = g.base("dst")
	a := g.broadcast("a")
	g.each(g.Load(g.Param("dst").Len(), g.GP64()), func(i reg.Register) {
		d := g.load(ptr{dst, i})
		g.mul(a, d, d)
		g.store(d, ptr{dst, i})
	})
	g.ret()

	g.fn("axpy", "func(dst []float32, a float32, x []float32)")
	dst, x = g.base("dst"), g.base("x")
	a = g.broadcast("a")
	g.each(g.Load(g.Param("dst").Len(), g.GP64()), func(i reg.Register) {
		d := g.load(ptr{dst, i})
		g.fma231(g.load(ptr{x, i}), a, d)
		g.store(d, ptr{dst, i})
	})
	g.ret()

	g.fn("sum", "func(x []float32) float32")
	x = g.base("x")
	acc := g.zero()
	g.each(g.Load(g.Param("x").Len(), g.GP64()), func(i reg.Register) {
		g.add(g.load(ptr{x, i}), acc, acc)
	})
	g.returns(g.fold(g.VADDPS, acc))

	g.fn("sumSquares", "func(x []float32, mean float32) float32")
	x = g.base("x")
	mean := g.broadcast("mean")
	acc = g.zero()
	g.each(g.Load(g.Param("x").Len(), g.GP64()), func(i reg.Register) {
		v := g.load(ptr{x, i})
		g.sub(mean, v, v)
		g.keep(v, cst{}, true)
		g.fma231(v, v, acc)
	})
	g.returns(g.fold(g.VADDPS, acc))

	norm(g, "normScale", "func(dst, x, w []float32, mean, inv float32)", false)
	norm(g, "normShift", "func(dst, x, w, b []float32, mean, inv float32)", true)
	rope(g)
}

func norm(g *gen, name, signature string, shift bool) {
	g.fn(name, signature)
	dst := g.base("dst")
	x := g.base("x")
	w := g.base("w")
	var b reg.Register
	if shift {
		b = g.base("b")
	}
	mean, inv := g.broadcast("mean"), g.broadcast("inv")
	g.each(g.Load(g.Param("dst").Len(), g.GP64()), func(i reg.Register) {
		v := g.load(ptr{x, i})
		g.sub(mean, v, v)
		g.mul(inv, v, v)
		if shift {
			g.fma213(g.load(ptr{b, i}), g.load(ptr{w, i}), v)
		} else {
			g.mul(g.load(ptr{w, i}), v, v)
		}
		g.store(v, ptr{dst, i})
	})
	g.ret()
}

func rope(g *gen) {
	g.fn("ropeHalf", "func(x, y, cos, sin []float32)")
	x := g.base("x")
	y := g.base("y")
	cos := g.base("cos")
	sin := g.base("sin")
	g.each(g.Load(g.Param("cos").Len(), g.GP64()), func(i reg.Register) {
		u, v := g.load(ptr{x, i}), g.load(ptr{y, i})
		c, s := g.load(ptr{cos, i}), g.load(ptr{sin, i})
		t := g.vec()
		g.mul(s, v, t)    // y·s
		g.mul(u, s, s)    // x·s
		g.fms213(t, c, u) // x·c - y·s
		g.fma213(s, c, v) // y·c + x·s
		g.store(u, ptr{x, i})
		g.store(v, ptr{y, i})
	})
	g.ret()

	// The caller passes a multiple of 8 pairs. One register holds x and y in turn; cosines
	// and sines are spread to both lanes of their pair, and VFMADDSUB subtracts in even lanes and adds in odd.
	g.fn("ropePairs", "func(x, cos, sin []float32)")
	x = g.base("x")
	cos = g.base("cos")
	sin = g.base("sin")
	n := g.Load(g.Param("cos").Len(), g.GP64())
	step := 4
	if g.level.zmm {
		step = 8
	}
	i := g.GP64()
	g.XORQ(i, i)
	loop, done := g.label(), g.label()
	g.Label(loop)
	g.CMPQ(i, n)
	g.JGE(operand.LabelRef(done))
	c := g.reg()
	s := g.reg()
	u := g.reg()
	t := g.reg()
	g.VPMOVZXDQ(operand.Mem{Base: cos, Index: i, Scale: 4}, c)
	g.VPMOVZXDQ(operand.Mem{Base: sin, Index: i, Scale: 4}, s)
	g.VMOVSLDUP(c, c)
	g.VMOVSLDUP(s, s)
	g.VMOVUPS(operand.Mem{Base: x, Index: i, Scale: 8}, u)
	g.VPERMILPS(operand.U8(0xb1), u, t) // y, x
	g.VMULPS(s, t, t)
	g.VFMADDSUB213PS(t, c, u) // x·c - y·s, y·c + x·s
	g.VMOVUPS(u, operand.Mem{Base: x, Index: i, Scale: 8})
	g.ADDQ(operand.I8(step), i)
	g.JMP(operand.LabelRef(loop))
	g.Label(done)
	g.ret()
}
