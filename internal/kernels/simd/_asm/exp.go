package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The constants and the order of operations are those of ../exp.go.
const (
	expLo    = -0x1.5d589ep6
	expHi    = 0x1.62e42ep6
	log2e    = 0x1.715476p0
	ln2Hi    = 0x1.62e430p-1
	ln2Lo    = -0x1.05c610p-29
	expMagic = 0x1.8p23

	tailMax = 14
	tailMid = 3
)

var (
	expPoly  = []float64{0x1.6a2434p-10, 0x1.1239e2p-7, 0x1.5558f2p-5, 0x1.555492p-3, 0x1.fffffcp-2, 1, 1}
	tailPoly = []float64{0x1.c64012p-15, 0x1.e6b230p-14, -0x1.646c40p-12, -0x1.01ff64p-10, 0x1.7cb9a6p-9,
		0x1.91e0f6p-8, -0x1.7a9458p-5, 0x1.f8baccp-4, -0x1.a6b66ap-3, 0x1.f1b89cp-4}
)

const (
	signBit = 1 << 31
	infBits = 0x7f800000
)

func expKernels(g *gen) {
	g.fn("exp", "func(dst, x []float32)")
	dst, x := g.base("dst"), g.base("x")
	g.each(g.Load(g.Param("dst").Len(), g.GP64()), func(i reg.Register) {
		g.store(g.exp(g.load(ptr{x, i})), ptr{dst, i})
	})
	g.ret()

	g.fn("expSum", "func(x []float32, scale, m float32) float32")
	x = g.base("x")
	scale, m := g.broadcast("scale"), g.broadcast("m")
	acc := g.zero()
	g.each(g.Load(g.Param("x").Len(), g.GP64()), func(i reg.Register) {
		v := g.load(ptr{x, i})
		g.mul(scale, v, v)
		g.sub(m, v, v)
		e := g.exp(v)
		g.store(e, ptr{x, i})
		g.keep(e, cst{}, true)
		g.add(e, acc, acc)
	})
	g.returns(g.fold(g.VADDPS, acc))

	g.fn("sumExp", "func(x []float32, m float32) float32")
	x = g.base("x")
	m = g.broadcast("m")
	acc = g.zero()
	g.each(g.Load(g.Param("x").Len(), g.GP64()), func(i reg.Register) {
		v := g.load(ptr{x, i})
		g.sub(m, v, v)
		e := g.exp(v)
		g.keep(e, cst{}, true)
		g.add(e, acc, acc)
	})
	g.returns(g.fold(g.VADDPS, acc))

	g.fn("siluMul", "func(dst, gate, up []float32)")
	dst = g.base("dst")
	gate := g.base("gate")
	up := g.base("up")
	g.each(g.Load(g.Param("dst").Len(), g.GP64()), func(i reg.Register) {
		v := g.load(ptr{gate, i})
		n := g.vec()
		g.xor(g.u(signBit), v, n)
		e := g.exp(n)
		g.add(g.f(1), e, e)
		g.div(e, v, v)
		g.mul(g.load(ptr{up, i}), v, v)
		g.store(v, ptr{dst, i})
	})
	g.ret()

	g.fn("geluMul", "func(dst, gate, up []float32, c1, c3 float32)")
	dst = g.base("dst")
	gate = g.base("gate")
	up = g.base("up")
	c1, c3 := g.broadcast("c1"), g.broadcast("c3")
	g.each(g.Load(g.Param("dst").Len(), g.GP64()), func(i reg.Register) {
		v := g.load(ptr{gate, i})
		u := g.vec()
		g.mul(v, v, u)
		g.mul(c3, u, u)
		g.add(c1, u, u)
		g.mul(v, u, u)
		e := g.exp(u)
		g.add(g.f(1), e, e)
		g.div(e, v, v)
		g.mul(g.load(ptr{up, i}), v, v)
		g.store(v, ptr{dst, i})
	})
	g.ret()

	g.fn("gelu", "func(dst, x []float32)")
	dst, x = g.base("dst"), g.base("x")
	g.each(g.Load(g.Param("dst").Len(), g.GP64()), func(i reg.Register) {
		v := g.load(ptr{x, i})
		a, u := g.vec(), g.set(g.f(tailMax))
		g.and(g.u(signBit-1), v, a)
		g.min(a, u, a) // a NaN stays
		g.sub(g.f(tailMid), a, u)
		d := g.vec()
		g.add(g.f(tailMid), a, d)
		g.div(d, u, u)
		h, y := g.vec(), g.vec()
		g.mul(g.f(-0.5), a, h)
		g.mul(a, h, y)
		g.fms213(y, a, h) // -a²/2 is y + h
		e := g.expReduced(y, h)
		g.zeroBelow(y, expLo, e)
		t := g.poly(tailPoly, u)
		g.mul(e, t, t)
		// P(X <= x) is t for negative x, else 1 - t.
		f := g.set(g.f(1))
		g.sub(t, f, f)
		for h := range f {
			if g.level.zmm {
				k := g.K()
				g.VPMOVD2M(v[h], k)
				g.VMOVAPS(t[h], k, f[h])
			} else {
				g.VBLENDVPS(v[h], t[h], f[h], f[h])
			}
		}
		g.mul(v, f, f)
		g.store(f, ptr{dst, i})
	})
	g.ret()
}

// exp is exp1 of ../exp.go.
func (g *gen) exp(x vec) vec {
	p := g.expReduced(x, nil)
	g.zeroBelow(x, expLo, p)
	// Above expHi, and where x is NaN, the result is x·Inf.
	hi, inf := g.f(expHi), g.u(infBits)
	const notLessEqual = 6
	for h := range p {
		if g.level.zmm {
			k := g.K()
			g.VCMPPS_BCST(operand.U8(notLessEqual), hi.m, x[h], k)
			g.VMULPS_BCST(inf.m, x[h], k, p[h])
		} else {
			m, y := g.YMM(), g.YMM()
			g.VCMPPS(operand.U8(notLessEqual), hi.m, x[h], m)
			g.VMULPS(inf.m, x[h], y)
			g.VBLENDVPS(m, y, p[h], p[h])
		}
	}
	return p
}

func (g *gen) zeroBelow(x vec, lo float64, p vec) {
	c := g.f(lo)
	const lessThan, notLessThan = 1, 5
	for h := range p {
		if g.level.zmm {
			k := g.K()
			g.VCMPPS_BCST(operand.U8(notLessThan), c.m, x[h], k)
			g.VMOVAPS_Z(p[h], k, p[h])
		} else {
			m := g.YMM()
			g.VCMPPS(operand.U8(lessThan), c.m, x[h], m)
			g.VANDNPS(p[h], m, p[h])
		}
	}
}

// expReduced is expReduced of ../exp.go; low may be nil.
func (g *gen) expReduced(x, low vec) vec {
	t := g.set(g.f(expMagic))
	g.fma231(g.f(log2e), x, t)
	n, r := g.vec(), g.copy(x)
	g.sub(g.f(expMagic), t, n)
	g.fnma231(g.f(ln2Hi), n, r)
	g.fnma231(g.f(ln2Lo), n, r)
	if low != nil {
		g.add(low, r, r)
	}
	p := g.poly(expPoly, r)
	for h := range p {
		g.VPSLLD(operand.U8(23), t[h], t[h])
		g.VPADDD(t[h], p[h], p[h])
	}
	return p
}

// poly evaluates a polynomial by Horner's rule, highest coefficient first.
func (g *gen) poly(c []float64, x vec) vec {
	p := g.set(g.f(c[0]))
	for _, v := range c[1:] {
		g.fma213(g.f(v), x, p)
	}
	return p
}
