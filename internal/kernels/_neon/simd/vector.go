package main

func vectorKernels(g *gen) {
	g.masks()
	const dst, x, w, b, n = "R0", "R1", "R2", "R3", "R4"

	g.fn("add", "func(dst, x []float32)")
	g.params("dst_base", dst, "dst_len", n, "x_base", x)
	g.each(n, 4, func() {
		d, v := g.vec(0), g.vec(4)
		g.peek(d, dst)
		g.load(v, x)
		op2(g.Fadd, d, d, v)
		g.store(d, dst)
	})
	g.ret()

	g.fn("scale", "func(dst []float32, a float32)")
	g.params("dst_base", dst, "dst_len", n)
	g.broadcast("a", 31)
	g.each(n, 4, func() {
		d := g.vec(0)
		g.peek(d, dst)
		op2(g.Fmul, d, d, g.same(31))
		g.store(d, dst)
	})
	g.ret()

	g.fn("axpy", "func(dst []float32, a float32, x []float32)")
	g.params("dst_base", dst, "dst_len", n, "x_base", x)
	g.broadcast("a", 31)
	g.each(n, 4, func() {
		d, v := g.vec(0), g.vec(4)
		g.peek(d, dst)
		g.load(v, x)
		op2(g.Fmla, d, v, g.same(31))
		g.store(d, dst)
	})
	g.ret()

	const acc = 20
	g.fn("sum", "func(x []float32) float32")
	g.params("x_base", x, "x_len", n)
	g.clears(acc, 4)
	g.each(n, 4, func() {
		v := g.vec(0)
		g.load(v, x)
		g.sum(acc, 8, func(acc vec) { op2(g.Fadd, acc, acc, v) })
	})
	g.fold(acc)

	g.fn("sumSquares", "func(x []float32, mean float32) float32")
	g.params("x_base", x, "x_len", n)
	g.broadcast("mean", 31)
	g.clears(acc, 4)
	g.each(n, 4, func() {
		v := g.vec(0)
		g.load(v, x)
		op2(g.Fsub, v, v, g.same(31))
		g.keep(v, 8)
		g.sum(acc, 8, func(acc vec) { op2(g.Fmla, acc, v, v) })
	})
	g.fold(acc)

	norm := func(name, signature string, shift bool) {
		g.fn(name, signature)
		g.params("dst_base", dst, "dst_len", n, "x_base", x, "w_base", w)
		if shift {
			g.params("b_base", b)
		}
		g.broadcast("mean", 30)
		g.broadcast("inv", 31)
		g.each(n, 4, func() {
			v, f := g.vec(0), g.vec(4)
			g.load(v, x)
			g.load(f, w)
			op2(g.Fsub, v, v, g.same(30))
			op2(g.Fmul, v, v, g.same(31))
			if shift {
				s := g.vec(8)
				g.load(s, b)
				op2(g.Fmla, s, v, f)
				v = s
			} else {
				op2(g.Fmul, v, v, f)
			}
			g.store(v, dst)
		})
		g.ret()
	}
	norm("normScale", "func(dst, x, w []float32, mean, inv float32)", false)
	norm("normShift", "func(dst, x, w, b []float32, mean, inv float32)", true)
	rope(g)
}

func rope(g *gen) {
	const x, y, cos, sin, n = "R0", "R1", "R2", "R3", "R4"
	// rotate leaves the new pair in place of c and s. Only the product with the sine is rounded by itself.
	rotate := func(u, v, c, s, t, w vec) (x, y vec) {
		op2(g.Fmul, t, v, s)
		op1(g.Fneg, t, t)
		op2(g.Fmul, w, u, s)
		op2(g.Fmla, t, u, c) // x·c - y·s
		op2(g.Fmla, w, v, c) // y·c + x·s
		return t, w
	}
	g.fn("ropeHalf", "func(x, y, cos, sin []float32)")
	g.params("x_base", x, "y_base", y, "cos_base", cos, "cos_len", n, "sin_base", sin)
	g.each(n, 4, func() {
		u := g.vec(0)
		v := g.vec(4)
		c := g.vec(8)
		s := g.vec(12)
		g.peek(u, x)
		g.peek(v, y)
		g.load(c, cos)
		g.load(s, sin)
		u, v = rotate(u, v, c, s, g.vec(16), g.vec(20))
		g.store(u, x)
		g.store(v, y)
	})
	g.ret()

	// The caller passes a multiple of 8 pairs. Their halves are read apart, and written as they were.
	g.fn("ropePairs", "func(x, cos, sin []float32)")
	g.params("x_base", x, "cos_base", cos, "cos_len", n, "sin_base", sin)
	loop, done := g.label(), g.label()
	g.I("CBZ %s, %s", n, done)
	g.Label("%s", loop)
	g.width = 2
	g.I("VLD2 (%s), %s", x, list(0, 2))
	g.I("ADD $32, %s, %s", x, scratch)
	g.I("VLD2 (%s), %s", scratch, list(2, 2))
	c, s := g.vec(8), g.vec(12)
	g.load(c, cos)
	g.load(s, sin)
	rotate(vec{0, 2}, vec{1, 3}, c, s, vec{16, 18}, vec{17, 19})
	g.I("VST2.P %s, 32(%s)", list(16, 2), x)
	g.I("VST2.P %s, 32(%s)", list(18, 2), x)
	g.I("SUBS $8, %s, %s", n, n)
	g.I("BNE %s", loop)
	g.Label("%s", done)
	g.ret()
}
