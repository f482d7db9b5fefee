package main

import "math"

// The constants and the order of operations are those of ../../simd/exp.go.
const (
	expLo    = -0x1.5d589ep6
	expHi    = 0x1.62e42ep6
	log2e    = 0x1.715476p0
	ln2Hi    = 0x1.62e430p-1
	ln2Lo    = -0x1.05c610p-29
	expMagic = 0x1.8p23

	exp2 = 0x1.fffffcp-2
	exp3 = 0x1.555492p-3
	exp4 = 0x1.5558f2p-5
	exp5 = 0x1.1239e2p-7
	exp6 = 0x1.6a2434p-10

	tailMax = 14
	tailMid = 3
)

// Registers of constants. A product takes its constant factor from an element; a term is copied from one, since a
// multiply-add overwrites it.
const (
	kFactors = 24 // log2e, ln2Hi, ln2Lo, exp6
	kTerms   = 25 // exp5, exp4, exp3, exp2
	kInf     = 26 // +Inf, and what a kernel puts beside it
	kMagic   = 27 // from here on, the same in all lanes
	kLo      = 28
	kHi      = 29
	kOne     = 30
)

// Registers of a vector's exponential, for up to 4 of them.
const (
	vX = 4 * iota
	vT
	vR
	vP
	vQ
	vFree
)

func expKernels(g *gen) {
	g.masks()
	g.table("exps",
		log2e, ln2Hi, ln2Lo, exp6,
		exp5, exp4, exp3, exp2,
		math.Inf(1), 0, 0, 0,
		expMagic, expLo, expHi, 1)
	g.table("tails", // highest first
		0x1.c64012p-15, 0x1.e6b230p-14, -0x1.646c40p-12, -0x1.01ff64p-10,
		0x1.7cb9a6p-9, 0x1.91e0f6p-8, -0x1.7a9458p-5, 0x1.f8baccp-4,
		-0x1.a6b66ap-3, 0x1.f1b89cp-4, -0.5, 0,
		tailMid, tailMax, 0, 0)

	const dst, x, n = "R0", "R1", "R2"
	g.fn("exp", "func(dst, x []float32)")
	g.params("dst_base", dst, "dst_len", n, "x_base", x)
	g.expConstants()
	g.each(n, 4, func() {
		v := g.vec(vX)
		g.load(v, x)
		g.store(g.exp(v), dst)
	})
	g.ret()

	g.fn("expSum", "func(x []float32, scale, m float32) float32")
	g.params("x_base", x, "x_len", n)
	g.expConstants()
	g.I("FMOVS %s, F0", g.arg("scale"))
	g.I("VMOV V0.S[0], V%d.S[1]", kInf)
	g.broadcast("m", 31)
	g.clears(vFree, 4)
	g.each(n, 4, func() {
		v := g.vec(vX)
		g.peek(v, x)
		elem(g.FmulElem, v, v, kInf, 1)
		op2(g.Fsub, v, v, g.same(31))
		e := g.exp(v)
		g.store(e, x)
		g.keep(e, vT)
		g.sum(vFree, vT, func(acc vec) { op2(g.Fadd, acc, acc, e) })
	})
	g.fold(vFree)

	g.fn("sumExp", "func(x []float32, m float32) float32")
	g.params("x_base", x, "x_len", n)
	g.expConstants()
	g.broadcast("m", 31)
	g.clears(vFree, 4)
	g.each(n, 4, func() {
		v := g.vec(vX)
		g.load(v, x)
		op2(g.Fsub, v, v, g.same(31))
		e := g.exp(v)
		g.keep(e, vT)
		g.sum(vFree, vT, func(acc vec) { op2(g.Fadd, acc, acc, e) })
	})
	g.fold(vFree)

	const gate, up = "R1", "R3"
	g.fn("siluMul", "func(dst, gate, up []float32)")
	g.params("dst_base", dst, "dst_len", n, "gate_base", gate, "up_base", up)
	g.expConstants()
	g.each(n, 4, func() {
		v := g.vec(vFree)
		neg := g.vec(vX)
		u := g.vec(vT)
		g.load(v, gate)
		op1(g.Fneg, neg, v)
		e := g.exp(neg)
		op2(g.Fadd, e, e, g.same(kOne))
		op2(g.Fdiv, v, v, e)
		g.load(u, up)
		op2(g.Fmul, v, v, u)
		g.store(v, dst)
	})
	g.ret()

	g.fn("geluMul", "func(dst, gate, up []float32, c1, c3 float32)")
	g.params("dst_base", dst, "dst_len", n, "gate_base", gate, "up_base", up)
	g.expConstants()
	g.I("FMOVS %s, F0", g.arg("c3"))
	g.I("VMOV V0.S[0], V%d.S[1]", kInf)
	g.broadcast("c1", 31)
	g.each(n, 4, func() {
		v := g.vec(vFree)
		x := g.vec(vX)
		u := g.vec(vT)
		g.load(v, gate)
		op2(g.Fmul, x, v, v)
		elem(g.FmulElem, x, x, kInf, 1)
		op2(g.Fadd, x, x, g.same(31))
		op2(g.Fmul, x, x, v)
		e := g.exp(x)
		op2(g.Fadd, e, e, g.same(kOne))
		op2(g.Fdiv, v, v, e)
		g.load(u, up)
		op2(g.Fmul, v, v, u)
		g.store(v, dst)
	})
	g.ret()
	gelu(g)
}

func (g *gen) expConstants() {
	g.constants("exps", kFactors, 4)
	for _, k := range []int{kOne, kHi, kLo, kMagic} { // the last in place of what they come from
		g.dup(k, 27, k-kMagic)
	}
}

// exp is exp1 of ../../simd/exp.go. It uses x up.
func (g *gen) exp(x vec) vec {
	t, e := g.vec(vT), g.expReduced(x, g.vec(vT), g.vec(vR), g.vec(vP), g.vec(vQ), nil)
	op2(g.Fcmgt, t, g.same(kLo), x)
	op2(g.Bic, e, e, t)
	// Above expHi, and where x is NaN, the result is x·Inf.
	op2(g.Fcmge, t, g.same(kHi), x)
	elem(g.FmulElem, x, x, kInf, 0)
	op2(g.bitUnless, e, x, t)
	return e
}

// expReduced is expReduced of ../../simd/exp.go; low may be nil. It uses t, r, p and q, and the result is in
// one of the last two.
func (g *gen) expReduced(x, t, r, p, q, low vec) vec {
	g.copies(t, kMagic)
	elem(g.FmlaElem, t, x, kFactors, 0)
	n := p
	op2(g.Fsub, n, t, g.same(kMagic))
	op1(g.mov, r, x)
	elem(g.FmlsElem, r, n, kFactors, 1)
	elem(g.FmlsElem, r, n, kFactors, 2)
	if low != nil {
		op2(g.Fadd, r, r, low)
	}
	g.set(p, kTerms, 0)
	elem(g.FmlaElem, p, r, kFactors, 3)
	for i := 1; i < 4; i++ {
		g.set(q, kTerms, i)
		op2(g.Fmla, q, p, r)
		p, q = q, p
	}
	for range 2 {
		g.copies(q, kOne)
		op2(g.Fmla, q, p, r)
		p, q = q, p
	}
	for i := range t {
		g.I("VSHL $23, V%d.S4, V%d.S4", t[i], t[i])
	}
	op2(g.add, p, p, t)
	return p
}

// gelu goes two vectors at a time: its two polynomials are as many chains as four exponentials.
func gelu(g *gen) {
	const dst, x, n = "R0", "R1", "R2"
	const kTails, kMid, kMax = 20, kHi, 31 // the registers of the polynomial, three
	const half = 2                         // element of the last of them
	g.fn("gelu", "func(dst, x []float32)")
	g.params("dst_base", dst, "dst_len", n, "x_base", x)
	g.expConstants()
	g.constants("tails", kTails, 4)
	g.dup(kMid, kTails+3, 0)
	g.dup(kMax, kTails+3, 1)
	g.each(n, 2, func() {
		v := g.vec(0)
		a := g.vec(2)
		h := g.vec(4)
		low := g.vec(6)
		u, d := g.vec(8), g.vec(10)
		t := g.vec(12)
		r := g.vec(14)
		p := g.vec(16)
		q := g.vec(18)
		g.load(v, x)
		op1(g.Fabs, a, v)
		op2(g.Fmin, a, a, g.same(kMax)) // a NaN stays
		op2(g.Fsub, u, a, g.same(kMid))
		op2(g.Fadd, d, a, g.same(kMid))
		op2(g.Fdiv, u, u, d)
		elem(g.FmulElem, h, a, kTails+2, half)
		y := d
		op2(g.Fmul, y, h, a)
		op1(g.Fneg, low, y)
		op2(g.Fmla, low, h, a) // -a²/2 is y + low
		e := g.expReduced(y, t, r, p, q, low)
		op2(g.Fcmgt, t, g.same(kLo), y)
		op2(g.Bic, e, e, t)
		s, w := a, h
		g.set(s, kTails, 0)
		for i := 1; i < 10; i++ {
			g.set(w, kTails+i/4, i%4)
			op2(g.Fmla, w, s, u)
			s, w = w, s
		}
		op2(g.Fmul, s, s, e)
		// P(X <= x) is s for negative x, else 1 - s.
		op2(g.Fsub, w, g.same(kOne), s)
		op1(g.Cmlt0, t, v)
		op2(g.bitWhere, w, s, t)
		op2(g.Fmul, w, v, w)
		g.store(w, dst)
	})
	g.ret()
}
