package main

// kvKernels writes conversions of a cache of Q8_0, and the fold of ranges of attention. Lengths are multiples of 16.
func kvKernels(g *gen) {
	const dst, x, h, n = "R0", "R1", "R2", "R3"

	g.fn("intsToBF16", "func(dst, x []byte)")
	g.params("dst_base", dst, "x_base", x, "x_len", n)
	whole(g, n, 16, func() {
		g.I("VLD1.P 16(%s), [V0.B8, V1.B8]", x)
		for i := range 2 { // the lower halves of such small integers, as f32, are zero
			v := 2 + 3*i
			g.SxtlB(i, i)
			g.SxtlH(v, i)
			g.Sxtl2H(v+1, i)
			g.IntToFloat(v, v)
			g.IntToFloat(v+1, v+1)
			g.I("VUZP2 V%d.H8, V%d.H8, V%d.H8", v+1, v, 16+i)
		}
		g.I("VST1.P [V16.H8, V17.H8], 32(%s)", dst)
	})
	g.ret()

	const a, b, rows, cols, left = "R4", "R5", "R6", "R7", "R8"
	g.fn("blendRows", "func(dst, x, a, b []float32, cols int)")
	g.params("dst_base", dst, "x_base", x, "a_base", a, "a_len", rows, "b_base", b, "cols", cols)
	loop, done := g.label(), g.label()
	g.I("CBZ %s, %s", rows, done)
	g.Label("%s", loop)
	g.I("FMOVS.P 4(%s), F30", a)
	g.I("FMOVS.P 4(%s), F31", b)
	g.dup(30, 30, 0)
	g.dup(31, 31, 0)
	g.I("MOVD %s, %s", cols, left)
	whole(g, left, 16, func() {
		g.I("VLD1 (%s), %s", dst, list(0, 4))
		g.I("VLD1.P 64(%s), %s", x, list(4, 4))
		for i := range 4 {
			g.Fmul(i, i, 30)
			g.Fmla(i, 4+i, 31)
		}
		g.I("VST1.P %s, 64(%s)", list(0, 4), dst)
	})
	g.I("SUBS $1, %s, %s", rows, rows)
	g.I("BNE %s", loop)
	g.Label("%s", done)
	g.ret()

	g.fn("mulF16", "func(dst, x []float32, h []byte)")
	g.params("dst_base", dst, "x_base", x, "x_len", n, "h_base", h)
	whole(g, n, 16, func() {
		g.I("VLD1.P 64(%s), %s", x, list(0, 4))
		g.I("VLD1.P 32(%s), [V4.H8, V5.H8]", h)
		for i := range 2 {
			g.Fcvtl(16+2*i, 4+i)
			g.Fcvtl2(17+2*i, 4+i)
		}
		for i := range 4 {
			g.Fmul(i, i, 16+i)
		}
		g.I("VST1.P %s, 64(%s)", list(0, 4), dst)
	})
	g.ret()
}

// whole does body for every size of n elements, a multiple of it.
func whole(g *gen, n string, size int, body func()) {
	loop, done := g.label(), g.label()
	g.I("CBZ %s, %s", n, done)
	g.Label("%s", loop)
	body()
	g.I("SUBS $%d, %s, %s", size, n, n)
	g.I("BNE %s", loop)
	g.Label("%s", done)
}
