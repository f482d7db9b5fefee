package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func searchKernels(g *gen) {
	maxScaled(g)
	const equal, greater = 0, 0x1e // ordered: a NaN is neither
	find(g, "indexEqual", equal)
	find(g, "indexAbove", greater)
}

// maxScaled keeps four vectors of maxima, 64 elements apart: the order does not matter here.
func maxScaled(g *gen) {
	g.fn("maxScaled", "func(x []float32, scale float32) float32")
	x, n := g.base("x"), g.Load(g.Param("x").Len(), g.GP64())
	scale := g.broadcast("scale")
	negInf := g.f(math.Inf(-1))
	var acc [4]vec
	for j := range acc {
		acc[j] = g.set(negInf)
	}
	loop, rest := g.label(), g.label()
	g.Label(loop)
	g.CMPQ(n, operand.I8(64))
	g.JL(operand.LabelRef(rest))
	for j := range acc {
		for h := range acc[j] {
			v := g.reg()
			g.VMULPS(operand.Mem{Base: x, Disp: 64*j + 32*h}, scale[h], v)
			g.VMAXPS(acc[j][h], v, acc[j][h]) // of a NaN, acc
		}
	}
	g.ADDQ(operand.U32(256), x)
	g.SUBQ(operand.I8(64), n)
	g.JMP(operand.LabelRef(loop))
	g.Label(rest)
	g.max(acc[1], acc[0], acc[0])
	g.max(acc[3], acc[2], acc[2])
	g.max(acc[2], acc[0], acc[0])
	g.each(n, func(i reg.Register) {
		v := g.load(ptr{x, i})
		g.mul(scale, v, v)
		g.keep(v, negInf, false)
		g.max(acc[0], v, acc[0])
	})
	g.returns(g.fold(g.VMAXPS, acc[0]))
}

// find returns the first index whose element compares as wanted, 64 elements a turn until
// a turn has one, then 16.
func find(g *gen, name string, predicate uint8) {
	g.fn(name, "func(x []float32, v float32) int")
	x, n := g.base("x"), g.Load(g.Param("x").Len(), g.GP64())
	v := g.broadcast("v")
	i := g.GP64()
	g.XORQ(i, i)
	pred := operand.U8(predicate)
	at := func(disp int) operand.Mem { return operand.Mem{Base: x, Index: i, Scale: 4, Disp: disp} }
	// compare leaves v's comparison with 16 elements (of those in mask) as bits of r, and the flags of r.
	compare := func(r reg.GPVirtual, m *mask) {
		if g.level.zmm {
			k := g.K()
			e := g.ZMM()
			if m != nil {
				g.VMOVUPS_Z(at(0), m.k, e)
				g.VCMPPS(pred, v[0], e, m.k, k)
			} else {
				g.VMOVUPS(at(0), e)
				g.VCMPPS(pred, v[0], e, k)
			}
			g.KMOVW(k, r.As32())
		} else {
			var c [2]reg.GPVirtual
			for h := range c {
				e := g.YMM()
				if m != nil {
					g.VMASKMOVPS(at(32*h), m.v[h], e)
					g.VCMPPS(pred, v[h], e, e)
					g.VANDPS(m.v[h], e, e)
				} else {
					g.VMOVUPS(at(32*h), e)
					g.VCMPPS(pred, v[h], e, e)
				}
				c[h] = g.GP64()
				g.VMOVMSKPS(e, c[h].As32())
			}
			g.SHLL(operand.U8(8), c[1].As32())
			g.ORL(c[1].As32(), c[0].As32())
			g.MOVL(c[0].As32(), r.As32())
		}
		g.TESTL(r.As32(), r.As32())
	}
	loop64 := g.label()
	loop16 := g.label()
	tail := g.label()
	found := g.label()
	none := g.label()
	end := g.GP64()
	r := g.GP64()

	g.Label(loop64)
	g.LEAQ(operand.Mem{Base: i, Disp: 64}, end)
	g.CMPQ(end, n)
	g.JG(operand.LabelRef(loop16))
	if g.level.zmm {
		var k [4]reg.Register
		for j := range k {
			e := g.ZMM()
			k[j] = g.K()
			g.VMOVUPS(at(64*j), e)
			g.VCMPPS(pred, v[0], e, k[j])
		}
		g.KORW(k[0], k[1], k[0])
		g.KORW(k[2], k[3], k[2])
		g.KORTESTW(k[0], k[2])
	} else {
		var e [8]reg.VecVirtual
		for j := range e {
			e[j] = g.YMM()
			g.VMOVUPS(at(32*j), e[j])
			g.VCMPPS(pred, v[0], e[j], e[j])
		}
		for d := 4; d > 0; d /= 2 {
			for j := range d {
				g.VORPS(e[j+d], e[j], e[j])
			}
		}
		g.VPTEST(e[0], e[0])
	}
	g.JNZ(operand.LabelRef(loop16))
	g.MOVQ(end, i)
	g.JMP(operand.LabelRef(loop64))

	g.Label(loop16)
	g.LEAQ(operand.Mem{Base: i, Disp: 16}, end)
	g.CMPQ(end, n)
	g.JG(operand.LabelRef(tail))
	compare(r, nil)
	g.JNZ(operand.LabelRef(found))
	g.MOVQ(end, i)
	g.JMP(operand.LabelRef(loop16))

	g.Label(tail)
	left := g.GP64()
	g.MOVQ(n, left)
	g.SUBQ(i, left)
	g.JZ(operand.LabelRef(none))
	g.masked(left, func() { compare(r, g.mask) })
	g.JZ(operand.LabelRef(none))
	g.Label(found)
	g.BSFQ(r, r)
	g.ADDQ(r, i)
	g.Store(i, g.ReturnIndex(0))
	g.ret()
	g.Label(none)
	g.Store(n, g.ReturnIndex(0))
	g.ret()
}
