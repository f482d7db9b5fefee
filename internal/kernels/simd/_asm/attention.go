package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Both kernels keep a block of results in registers, some rows by some vectors, and walk the
// chain of each with one broadcast a row and one load a vector. Eight results in flight hide the latency of a
// multiply-add; more of them save loads. Rows that are left over go in smaller blocks.

func attentionKernels(g *gen) {
	scores(g)
	mix(g)
}

func (g *gen) width() int { // elements in a register
	if g.level.zmm {
		return 16
	}
	return 8
}

// rowPtr addresses a row of a block of up to 8: base and base4 (4 rows on), stride in bytes, 1 and 3 times.
type rowPtr struct{ base, base4, stride, stride3 reg.Register }

func (p rowPtr) row(r int) operand.Mem {
	b := p.base
	if r >= 4 {
		b = p.base4
	}
	switch r % 4 {
	case 0:
		return operand.Mem{Base: b}
	case 3:
		return operand.Mem{Base: b, Index: p.stride3, Scale: 1}
	}
	return operand.Mem{Base: b, Index: p.stride, Scale: uint8(r % 4)}
}

// stride loads a stride argument, in bytes, and three times that.
func (g *gen) stride(name string) (s, s3 reg.Register) {
	s = g.Load(g.Param(name), g.GP64())
	g.SHLQ(operand.U8(2), s)
	s3 = g.GP64()
	g.LEAQ(operand.Mem{Base: s, Index: s, Scale: 2}, s3)
	return s, s3
}

// block is rows × vectors of accumulators.
func (g *gen) block(rows, vectors int) [][]reg.VecVirtual {
	acc := make([][]reg.VecVirtual, rows)
	for r := range acc {
		for range vectors {
			acc[r] = append(acc[r], g.reg())
		}
	}
	return acc
}

// step is one link of every chain of a block: acc[r][c] = FMA(x[r], y[c], acc[r][c]). The vectors
// of y are loaded one by one, which is what lets AVX2 do with its 16 registers.
func (g *gen) step(acc [][]reg.VecVirtual, x rowPtr, y func(c int) reg.VecVirtual) {
	b := make([]reg.VecVirtual, len(acc))
	for r := range b {
		b[r] = g.reg()
		g.VBROADCASTSS(x.row(r), b[r])
	}
	for c := range acc[0] {
		v := y(c)
		for r := range acc {
			g.VFMADD231PS(v, b[r], acc[r][c])
		}
	}
}

// choose begins a turn over what is left of the rows: it goes to label rows1, rows2 and so on, for
// so many at once. What is left of two blocks goes in halves, for a small block would wait for its
// chains.
func (g *gen) choose(rows reg.Register, most int) {
	block := g.GP64()
	g.Label("next")
	g.MOVQ(rows, block)
	g.CMPQ(rows, operand.I8(most))
	g.JLE(operand.LabelRef("chosen"))
	g.MOVQ(operand.U32(most), block)
	g.CMPQ(rows, operand.I8(2*most))
	g.JGE(operand.LabelRef("chosen"))
	g.LEAQ(operand.Mem{Base: rows, Disp: 1}, block)
	g.SHRQ(operand.U8(1), block)
	g.Label("chosen")
	for n := 1; n < most; n++ {
		g.CMPQ(block, operand.I8(n))
		g.JEQ(operand.LabelRef(fmt.Sprintf("rows%d", n)))
	}
}

func scores(g *gen) {
	g.fn("scores", "func(dst []float32, dstStride int, q []float32, qStride, rows, hd int, kPage []float32)")
	dst := g.base("dst")
	q := g.base("q")
	page := g.base("kPage")
	dstStride := g.Load(g.Param("dstStride"), g.GP64())
	g.SHLQ(operand.U8(2), dstStride)
	qStride, qStride3 := g.stride("qStride")
	rows := g.Load(g.Param("rows"), g.GP64())
	hd, err := g.Param("hd").Resolve()
	if err != nil {
		panic(err)
	}
	most := 2
	if g.level.zmm {
		most = 8
	}
	g.choose(rows, most)
	for n := most; n > 0; n-- {
		loop, done := fmt.Sprintf("loop%d", n), fmt.Sprintf("done%d", n)
		g.Label(fmt.Sprintf("rows%d", n))
		acc := g.block(n, 32/g.width())
		for _, a := range acc {
			for _, v := range a {
				g.clear(v)
			}
		}
		x := rowPtr{g.GP64(), g.GP64(), qStride, qStride3}
		k, d := g.GP64(), g.GP64()
		g.MOVQ(page, k)
		g.MOVQ(q, x.base)
		if n > 4 {
			g.LEAQ(operand.Mem{Base: q, Index: qStride, Scale: 4}, x.base4)
		}
		g.MOVQ(hd.Addr, d)
		g.TESTQ(d, d)
		g.JZ(operand.LabelRef(done))
		g.Label(loop)
		g.step(acc, x, func(c int) reg.VecVirtual {
			y := g.reg()
			g.VMOVUPS(operand.Mem{Base: k, Disp: 4 * g.width() * c}, y)
			return y
		})
		g.ADDQ(operand.U32(4*32), k)
		g.ADDQ(operand.I8(4), x.base)
		if n > 4 {
			g.ADDQ(operand.I8(4), x.base4)
		}
		g.DECQ(d)
		g.JNZ(operand.LabelRef(loop))
		g.Label(done)
		for _, a := range acc {
			for c, v := range a {
				g.VMOVUPS(v, operand.Mem{Base: dst, Disp: 4 * g.width() * c})
			}
			g.ADDQ(dstStride, dst)
			g.ADDQ(qStride, q)
		}
		g.SUBQ(operand.I8(n), rows)
		g.JNZ(operand.LabelRef("next"))
		g.ret()
	}
}

func mix(g *gen) {
	g.fn("mix", "func(o []float32, oStride int, p []float32, pStride, rows, hd, count int, vPage []float32)")
	o, p := g.base("o"), g.base("p")
	oStride := g.Load(g.Param("oStride"), g.GP64())
	g.SHLQ(operand.U8(2), oStride)
	pStride, pStride3 := g.stride("pStride")
	rows := g.Load(g.Param("rows"), g.GP64())
	hd := g.Load(g.Param("hd"), g.GP64())
	count, err := g.Param("count").Resolve()
	if err != nil {
		panic(err)
	}
	// By the rows of a block, the vectors of them that are mixed at once. Few rows take more of hd
	// at once: then a page is read from end to end.
	shapes := [][]int{1: {8, 4, 1}, 2: {4, 1}}
	if g.level.zmm {
		shapes = [][]int{1: {8, 4, 2, 1}, 2: {8, 4, 2, 1}, 3: {4, 2, 1}, 4: {4, 2, 1}}
	}
	g.choose(rows, len(shapes)-1)
	for n := len(shapes) - 1; n > 0; n-- {
		g.Label(fmt.Sprintf("rows%d", n))
		t := g.GP64() // lanes of hd done
		g.XORQ(t, t)

		// tile mixes the next `vectors` vectors of hd.
		tile := func(vectors int) {
			at := func(base reg.Register, c int) operand.Mem {
				return operand.Mem{Base: base, Disp: 4 * g.width() * c}
			}
			load := func(m operand.Mem, v reg.VecVirtual) {
				switch {
				case g.mask == nil:
					g.VMOVUPS(m, v)
				case g.level.zmm:
					g.VMOVUPS_Z(m, g.mask.k, v)
				default:
					g.VMASKMOVPS(m, g.mask.v[0], v)
				}
			}
			store := func(v reg.VecVirtual, m operand.Mem) {
				switch {
				case g.mask == nil:
					g.VMOVUPS(v, m)
				case g.level.zmm:
					g.VMOVUPS(v, g.mask.k, m)
				default:
					g.VMASKMOVPS(v, g.mask.v[0], m)
				}
			}
			acc := g.block(n, vectors)
			row := g.GP64()
			g.LEAQ(operand.Mem{Base: o, Index: t, Scale: 4}, row)
			for r, a := range acc {
				if r > 0 {
					g.ADDQ(oStride, row)
				}
				for c, v := range a {
					load(at(row, c), v)
				}
			}
			x := rowPtr{base: g.GP64(), stride: pStride, stride3: pStride3}
			v, j := g.base("vPage"), g.GP64()
			g.LEAQ(operand.Mem{Base: v, Index: t, Scale: 4}, v)
			g.MOVQ(p, x.base)
			g.MOVQ(count.Addr, j)
			loop := g.label()
			g.Label(loop)
			g.step(acc, x, func(c int) reg.VecVirtual {
				y := g.reg()
				load(at(v, c), y)
				return y
			})
			g.ADDQ(operand.I8(4), x.base)
			g.LEAQ(operand.Mem{Base: v, Index: hd, Scale: 4}, v)
			g.DECQ(j)
			g.JNZ(operand.LabelRef(loop))
			row = g.GP64()
			g.LEAQ(operand.Mem{Base: o, Index: t, Scale: 4}, row)
			for r, a := range acc {
				if r > 0 {
					g.ADDQ(oStride, row)
				}
				for c, v := range a {
					store(v, at(row, c))
				}
			}
		}
		for _, vectors := range shapes[n] {
			lanes := vectors * g.width()
			loop, done := g.label(), g.label()
			g.Label(loop)
			end := g.GP64()
			g.LEAQ(operand.Mem{Base: t, Disp: lanes}, end)
			g.CMPQ(end, hd)
			g.JG(operand.LabelRef(done))
			tile(vectors)
			g.ADDQ(operand.U32(lanes), t)
			g.JMP(operand.LabelRef(loop))
			g.Label(done)
		}
		done, left := g.label(), g.GP64()
		g.MOVQ(hd, left)
		g.SUBQ(t, left)
		g.JZ(operand.LabelRef(done))
		g.masked(left, func() { tile(1) })
		g.Label(done)
		for range n {
			g.ADDQ(oStride, o)
			g.ADDQ(pStride, p)
		}
		g.SUBQ(operand.I8(n), rows)
		g.JNZ(operand.LabelRef("next"))
		g.ret()
	}
}
