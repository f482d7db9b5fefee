package main

import "fmt"

// Both kernels keep a block of results in registers, some rows by some vectors, and walk the chain
// of each: four links at a time, whose factors of a row are the elements of one register. A row
// alone has no more than the 8 vectors of its scores to hide a latency with; else blocks have 12 to
// 24 results in flight, and a load serves two to four of them.

func attentionKernels(g *gen) {
	scores(g)
	mix(g)
}

// chain is a block of rows × vectors of results, in registers from 0 on: result (r, c) = FMA(x[r], y[c], result), for
// count links. Row pointers of x are in xRow(r), and walk along the rows; yPtr walks from row to
// row of y by yStep, which is that of a row less what reading its vectors has moved it (see step).
type chain struct {
	rows, vectors int
	lane          bool // a vector has but one lane
	x, y          int  // registers
	sets          int  // of registers for y
}

const (
	yPtr, yStep, left = "R13", "R16", "R17"
)

func xRow(r int) string { return fmt.Sprintf("R%d", 9+r) }

func newChain(rows, vectors int) chain {
	c := chain{rows: rows, vectors: vectors, x: rows * vectors}
	c.y = c.x + rows
	c.sets = 1
	if c.y+2*c.group() <= 32 {
		c.sets = 2 // a load need not wait for the last use of its register
	}
	return c
}

// group is how many vectors of y are read at once.
func (c chain) group() int { return min(c.vectors, 4) }

// moved is how far reading a row of y but for its last group moves the pointer.
func (c chain) moved() int { return 16 * (c.vectors - c.group()) }

func (c chain) acc(r, v int) int { return r*c.vectors + v }

// walk writes the chain's loops; count is the register of the number of links.
func (g *gen) walk(c chain, count string) {
	loop := g.label()
	tail := g.label()
	last := g.label()
	done := g.label()
	g.I("SUBS $4, %s, %s", count, left)
	g.I("BLT %s", tail)
	g.Label("%s", loop)
	for r := range c.rows {
		g.I("FMOVQ.P 16(%s), F%d", xRow(r), c.x+r)
	}
	set := 0
	for i := range 4 {
		set = g.step(c, i, set)
	}
	g.I("SUBS $4, %s, %s", left, left)
	g.I("BGE %s", loop)
	g.Label("%s", tail)
	g.I("ADDS $4, %s, %s", left, left)
	g.I("BEQ %s", done)
	g.Label("%s", last)
	for r := range c.rows {
		g.I("FMOVS.P 4(%s), F%d", xRow(r), c.x+r)
	}
	g.step(c, 0, 0)
	g.I("SUBS $1, %s, %s", left, left)
	g.I("BNE %s", last)
	g.Label("%s", done)
}

// step is one link of every result, with element index of x.
func (g *gen) step(c chain, index, set int) (next int) {
	for v := 0; v < c.vectors; v += c.group() {
		y := c.y + set*c.group()
		set = (set + 1) % c.sets
		switch {
		case c.lane:
			g.I("FMOVS (%s), F%d", yPtr, y)
			g.I("ADD %s, %s, %s", yStep, yPtr, yPtr)
		case v+c.group() < c.vectors:
			g.I("VLD1.P %d(%s), %s", 16*c.group(), yPtr, list(y, c.group()))
		default:
			g.I("VLD1.P (%s)(%s), %s", yPtr, yStep, list(y, c.group()))
		}
		for r := range c.rows {
			for i := range c.group() {
				g.FmlaElem(c.acc(r, v+i), y+i, c.x+r, index)
			}
		}
	}
	return set
}

// rowsFrom points the rows of x at base and multiples of stride on.
func (g *gen) rowsFrom(rows int, base, stride string) {
	g.I("MOVD %s, %s", base, xRow(0))
	for r := 1; r < rows; r++ {
		g.I("ADD %s, %s, %s", stride, xRow(r-1), xRow(r))
	}
}

// move copies rows of results from memory or to it: to base and multiples of stride on.
func (g *gen) move(c chain, base, stride string, out bool) {
	g.I("MOVD %s, R14", base)
	for r := range c.rows {
		if r > 0 {
			g.I("ADD %s, %s, %s", stride, base, base)
			g.I("MOVD %s, R14", base)
		}
		for v := 0; v < c.vectors; v += c.group() {
			regs := list(c.acc(r, v), c.group())
			switch {
			case c.lane && out:
				g.I("FMOVS F%d, (R14)", c.acc(r, v))
			case c.lane:
				g.I("FMOVS (R14), F%d", c.acc(r, v))
			case out:
				g.I("VST1.P %s, %d(R14)", regs, 16*c.group())
			default:
				g.I("VLD1.P %d(R14), %s", 16*c.group(), regs)
			}
		}
	}
}

// Scores: a page has 8 vectors of positions. Of four rows, half the page is done at a time.
func scores(g *gen) {
	const dst, dstStride, q, qStride, rows, hd, page, at = "R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7"
	g.fn("scores", "func(dst []float32, dstStride int, q []float32, qStride, rows, hd int, kPage []float32)")
	g.params("dst_base", dst, "dstStride", dstStride, "q_base", q, "qStride", qStride, "rows", rows, "hd",
		hd, "kPage_base", page)
	g.I("LSL $2, %s, %s", dstStride, dstStride)
	g.I("LSL $2, %s, %s", qStride, qStride)
	for _, c := range []chain{newChain(4, 4), newChain(3, 8), newChain(2, 8), newChain(1, 8)} {
		again, next := fmt.Sprintf("rows%d", c.rows), fmt.Sprintf("fewer%d", c.rows)
		g.Label("%s", again)
		g.I("CMP $%d, %s", c.rows, rows)
		g.I("BLT %s", next)
		g.I("MOVD $%d, %s", 128-c.moved(), yStep)
		for pass := 0; pass < 8; pass += c.vectors {
			g.I("ADD $%d, %s, %s", 16*pass, page, yPtr)
			g.rowsFrom(c.rows, q, qStride)
			g.clears(0, c.rows*c.vectors)
			g.walk(c, hd)
			g.I("ADD $%d, %s, %s", 16*pass, dst, at)
			g.move(c, at, dstStride, true)
		}
		for range c.rows {
			g.I("ADD %s, %s, %s", dstStride, dst, dst)
			g.I("ADD %s, %s, %s", qStride, q, q)
		}
		g.I("SUB $%d, %s, %s", c.rows, rows, rows)
		g.I("JMP %s", again)
		g.Label("%s", next)
	}
	g.ret()
}

// Mix: few rows take more of hd at once. What is left of hd goes by vectors, then by lanes.
func mix(g *gen) {
	const o, oStride, p, pStride, rows, hd, page, count = "R0", "R1", "R2", "R3", "R4", "R5", "R6", "R8"
	const at, lanes, rowBytes, mixed = "R7", "R19", "R20", "R21" // mixed: where the page's part of the tile is
	const row = "R22"
	g.fn("mix", "func(o []float32, oStride int, p []float32, pStride, rows, hd, count int, vPage []float32)")
	g.params("o_base", o, "oStride", oStride, "p_base", p, "pStride", pStride, "rows", rows, "hd", hd, "count",
		count, "vPage_base", page)
	g.I("LSL $2, %s, %s", oStride, oStride)
	g.I("LSL $2, %s, %s", pStride, pStride)
	g.I("LSL $2, %s, %s", hd, rowBytes)
	for _, shape := range []struct {
		rows  int
		tiles []int
	}{{4, []int{4, 1}}, {3, []int{8, 4, 1}}, {2, []int{8, 4, 1}}, {1, []int{16, 8, 4, 1}}} {
		again, next := fmt.Sprintf("rows%d", shape.rows), fmt.Sprintf("fewer%d", shape.rows)
		g.Label("%s", again)
		g.I("CMP $%d, %s", shape.rows, rows)
		g.I("BLT %s", next)
		g.I("MOVD %s, %s", hd, lanes)
		g.I("MOVD %s, %s", o, at)
		g.I("MOVD %s, %s", page, mixed)

		tile := func(c chain, width int) {
			loop, done := g.label(), g.label()
			g.Label("%s", loop)
			g.I("CMP $%d, %s", width, lanes)
			g.I("BLT %s", done)
			g.I("SUB $%d, %s, %s", c.moved(), rowBytes, yStep)
			g.I("MOVD %s, %s", mixed, yPtr)
			g.rowsFrom(c.rows, p, pStride)
			g.I("MOVD %s, %s", at, row)
			g.move(c, row, oStride, false)
			g.walk(c, count)
			g.I("MOVD %s, %s", at, row)
			g.move(c, row, oStride, true)
			g.I("ADD $%d, %s, %s", 4*width, at, at)
			g.I("ADD $%d, %s, %s", 4*width, mixed, mixed)
			g.I("SUB $%d, %s, %s", width, lanes, lanes)
			g.I("JMP %s", loop)
			g.Label("%s", done)
		}
		for _, vectors := range shape.tiles {
			tile(newChain(shape.rows, vectors), 4*vectors)
		}
		single := newChain(shape.rows, 1)
		single.lane = true
		tile(single, 1)

		for range shape.rows {
			g.I("ADD %s, %s, %s", oStride, o, o)
			g.I("ADD %s, %s, %s", pStride, p, p)
		}
		g.I("SUB $%d, %s, %s", shape.rows, rows, rows)
		g.I("JMP %s", again)
		g.Label("%s", next)
	}
	g.ret()
}
