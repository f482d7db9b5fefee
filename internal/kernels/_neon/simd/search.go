package main

import "math"

func searchKernels(g *gen) {
	g.masks()
	g.table("least", math.Inf(-1))
	maxScaled(g)
	find(g, "indexEqual", "BEQ", g.Fcmeq)
	find(g, "indexAbove", "BGT", g.Fcmgt)
}

// maxScaled: the order of maxima does not matter. A product is no signalling NaN, so a maximum passes NaNs over.
func maxScaled(g *gen) {
	const x, n = "R0", "R1"
	const acc, lowest, scale = 20, 30, 31
	g.fn("maxScaled", "func(x []float32, scale float32) float32")
	g.params("x_base", x, "x_len", n)
	g.broadcast("scale", scale)
	g.I("MOVD $least<>(SB), %s", scratch)
	g.I("VLD1R (%s), [V%d.S4]", scratch, lowest)
	for i := range 4 {
		g.mov(acc+i, lowest)
	}
	g.each(n, 4, func() {
		v := g.vec(0)
		g.load(v, x)
		op2(g.Fmul, v, v, g.same(scale))
		if g.rest != "" {
			g.mask(8)
			g.bitUnless(0, lowest, 8)
		}
		a := g.vec(acc)
		op2(g.Fmaxnm, a, a, v)
	})
	g.Fmaxnm(acc, acc, acc+1)
	g.Fmaxnm(acc+2, acc+2, acc+3)
	g.Fmaxnm(acc, acc, acc+2)
	g.Fmaxnmv(acc, acc)
	g.I("FMOVS F%d, %s", acc, g.arg("ret"))
	g.ret()
}

// find returns the first index whose element compares as wanted, 32 elements a turn until a turn has one, then 16; the
// last ones go alone. A NaN compares as nothing.
func find(g *gen, name, branch string, compare func(d, n, m int)) {
	const x, n, at, left, bits = "R0", "R1", "R2", "R3", "R4"
	const v = 31
	g.fn(name, "func(x []float32, v float32) int")
	g.params("x_base", x, "x_len", n)
	g.broadcast("v", v)
	g.I("MOVD %s, %s", x, at)
	g.I("MOVD %s, %s", n, left)
	loop32 := g.label()
	back := g.label()
	loop16 := g.label()
	tail := g.label()
	found := g.label()
	one := g.label()
	none := g.label()

	g.Label("%s", loop32)
	g.I("SUBS $32, %s, %s", left, left)
	g.I("BLT %s", back)
	g.I("VLD1.P 64(%s), %s", at, list(0, 4))
	g.I("VLD1.P 64(%s), %s", at, list(4, 4))
	for i := range 8 {
		compare(i, i, v)
	}
	for d := 4; d > 0; d /= 2 {
		for i := range d {
			g.orr(i, i, i+d)
		}
	}
	g.Umaxv(0, 0)
	g.I("FMOVS F0, %s", bits)
	g.I("CBZW %s, %s", bits, loop32)
	g.I("SUB $128, %s, %s", at, at)
	g.Label("%s", back)
	g.I("ADD $32, %s, %s", left, left)

	g.Label("%s", loop16)
	g.I("CMP $16, %s", left)
	g.I("BLT %s", tail)
	g.I("VLD1 (%s), %s", at, list(0, 4))
	for i := range 4 {
		compare(i, i, v)
	}
	g.I("VUZP1 V1.H8, V0.H8, V0.H8")
	g.I("VUZP1 V3.H8, V2.H8, V2.H8")
	g.I("VUZP1 V2.B16, V0.B16, V0.B16")
	g.Nibbles(0, 0)
	g.I("FMOVD F0, %s", bits)
	g.I("CBNZ %s, %s", bits, found)
	g.I("ADD $64, %s, %s", at, at)
	g.I("SUB $16, %s, %s", left, left)
	g.I("JMP %s", loop16)

	g.Label("%s", tail)
	g.I("CBZ %s, %s", left, none)
	g.I("FMOVS (%s), F0", at)
	g.I("FCMPS F%d, F0", v)
	g.I("%s %s", branch, one)
	g.I("ADD $4, %s, %s", at, at)
	g.I("SUB $1, %s, %s", left, left)
	g.I("JMP %s", tail)

	g.Label("%s", found)
	g.I("RBIT %s, %s", bits, bits)
	g.I("CLZ %s, %s", bits, bits) // four bits an element, and four bytes of it
	g.I("ADD %s, %s, %s", bits, at, at)
	g.Label("%s", one)
	g.I("SUB %s, %s, %s", x, at, at)
	g.I("LSR $2, %s, %s", at, at)
	g.I("MOVD %s, %s", at, g.arg("ret"))
	g.ret()
	g.Label("%s", none)
	g.I("MOVD %s, %s", n, g.arg("ret"))
	g.ret()
}
