package main

import "fmt"

// What kernels of Q8_0 and of the K types have in common: blocks of 32 elements in turns, four
// elements of every output; sums of a block in integers, parts (of a group; of Q8_0, the whole
// sums) and the weights' scales in f32. The whole sums of the K types stay where the results go,
// for a group touches them once.
const (
	words  = 128 // bytes of four elements of a panel's outputs
	turns  = 8   // in a block
	blocks = 4   // in a group
)

// shapes are the kernels of a type: for one row of a whole panel, for few of half a one, and for
// more of a quarter: 6, or 5 where elements want more registers.
var shapes = []struct {
	suffix, part string
	vecs, rows   int
}{
	{"One", "", 8, 1},
	{"Few", "half ", 4, 3},
	{"", "a quarter of ", 2, 6},
}

// intKernel is a kernel of integers.
//
// With mmla its products are SMMLA's: of two rows of activations and two outputs, eight elements of
// each. Eight elements of two outputs are half of two turns, a and b: VZIP1 of a and b has the
// first two outputs of four, VZIP2 the others. These are the elements of an even turn and of the
// odd one after it. The activations of two rows are x(row) and x(row+1), eight elements of both in
// each. While they are summed, sum(row) has the first two outputs of both rows, in the order of d =
// { o0·r0, o0·r1, o1·r0, o1·r1 }, and sum(row+1) the other two. An odd row at the end is multiplied
// twice.
type intKernel struct {
	kernel
	xBlock int // bytes of a block of activations
	masks  int // vector registers of constants
	mmla   bool

	unsigned bool // the weights' bytes have no sign
}

// level is the end of the kernel's name.
func (k *intKernel) level() string {
	if k.mmla {
		return "I8MM"
	}
	return "NEON"
}

// sums is the number of rows whose sums are used, of r rows.
func (k *intKernel) sums(r int) int {
	if k.mmla {
		return (r + 1) &^ 1
	}
	return r
}

func (k *intKernel) part(row, v int) int { return k.maxRows*k.vecs + k.sum(row, v) }
func (k *intKernel) x(row int) int       { return 2*k.maxRows*k.vecs + row }
func (k *intKernel) mask(i int) int      { return k.x(k.maxRows) + i }

// temp is a free register; beyond the last come those of the activations, which are free between halves of a block.
func (k *intKernel) temp(i int) int {
	first := k.mask(k.masks)
	if n := 32 - first; i >= n {
		return k.x(i - n)
	}
	return first + i
}

// setMask fills a register of constants with a byte.
func (k *intKernel) setMask(i, b int) { k.I("VMOVI $%d, V%d.B16", b, k.mask(i)) }

// start zeroes the whole sums of r rows, or copies those to resume from.
func (k *intKernel) start(r int) {
	k.arg(tileFirst, tmp)
	k.I("MOVD %s, %s", out, tmp2)
	k.I("CBNZ %s, %s", tmp, label("zero", r))
	k.arg(tileAcc, tmp)
	rows := func(f func(row, v int)) {
		for row := range r {
			for v := 0; v < k.vecs; v += 2 {
				f(row, v)
			}
			if row < r-1 {
				k.I("ADD %s, %s, %s", outs, tmp2, tmp2)
			}
		}
	}
	rows(func(row, v int) {
		k.load(tmp, row*accRow+v*16, 0, 1)
		k.store(tmp2, v*16, 0, 1)
	})
	k.I("B %s", label("started", r))
	k.Label(label("zero", r))
	k.Zero(0)
	rows(func(row, v int) { k.store(tmp2, v*16, 0, 0) })
	k.Label(label("started", r))
}

// half loads every row's activations of a half of a block.
func (k *intKernel) half(r, h int) {
	if k.mmla {
		for row := 0; row < r; row += 2 {
			a, b := k.loadRows(r, row, "FMOVQ", h*16)
			k.zip("D2", a, b, k.x(row), k.x(row+1))
		}
		return
	}
	for row := range r {
		k.I("FMOVQ %d(%s), F%d", h*16, x(row), k.x(row))
	}
}

// loadRows loads what two rows have at an offset; of the last of an odd number that is one register.
func (k *intKernel) loadRows(r, row int, op string, off int) (a, b int) {
	a, b = k.temp(0), k.temp(0)
	k.I("%s %d(%s), F%d", op, off, x(row), a)
	if row+1 < r {
		b = k.temp(1)
		k.I("%s %d(%s), F%d", op, off, x(row+1), b)
	}
	return a, b
}

// zip interleaves the elements of a and b: of the lower halves, then of the upper ones.
func (k *intKernel) zip(size string, a, b, low, high int) {
	k.I("VZIP1 V%d.%s, V%d.%s, V%d.%s", b, size, a, size, low, size)
	k.I("VZIP2 V%d.%s, V%d.%s, V%d.%s", b, size, a, size, high, size)
}

// dot adds the products of neighbouring vectors of weights, from the v-th on, and the activations of a turn.
func (k *intKernel) dot(r, v, turn int, ws ...int) {
	for row := 0; k.mmla && row < r; row += 2 {
		for i, wv := range ws {
			if d, x := k.sum(row+turn%2, v+i), k.x(row+turn/2%2); k.unsigned {
				k.Usmmla(d, wv, x)
			} else {
				k.Smmla(d, wv, x)
			}
		}
	}
	if k.mmla {
		return
	}
	for row := range r {
		for i, wv := range ws {
			k.SdotElem(k.sum(row, v+i), wv, k.x(row), turn%4)
		}
	}
}

// float makes f32 of a row's sums of the v-th vector of outputs, and of the next; those of two rows
// at the first of both.
func (k *intKernel) float(r, row, v int) {
	for i := v; i < v+2; i++ {
		a := k.sum(row, i)
		b := k.sum(row+1, i)
		t := k.temp(5)
		switch {
		case !k.mmla:
			k.IntToFloat(a, a)
		case row%2 == 0:
			k.I("VUZP1 V%d.S4, V%d.S4, V%d.S4", b, a, t)
			if row+1 < r {
				k.I("VUZP2 V%d.S4, V%d.S4, V%d.S4", b, a, b)
				k.IntToFloat(b, b)
			}
			k.IntToFloat(a, t)
		}
	}
}

// scale adds the sums, times a and b, to the parts.
func (k *intKernel) scale(r, v, a, b int) {
	for row := range r {
		k.float(r, row, v)
	}
	for row := range r {
		k.Fmla(k.part(row, v), k.sum(row, v), a)
		k.Fmla(k.part(row, v+1), k.sum(row, v+1), b)
	}
}

// halves loads the f16 of the v-th vector of outputs, and the next, as f32.
func (k *intKernel) halves(off, v, a, b int) {
	k.I("FMOVQ %d(%s), F%d", off+v*8, heads, a)
	k.Fcvtl2(b, a)
	k.Fcvtl(a, a)
}

// whole adds the parts of a group, times its scale, to the whole sums, and goes on to the next group.
func (k *intKernel) whole(r int) {
	k.I("MOVD %s, %s", out, tmp2)
	for row := range r {
		k.I("FMOVS.P 4(%s), F%d", x(row), k.x(row))
		for v := 0; v < k.vecs; v += 2 {
			a, b := k.sum(row, v), k.sum(row, v+1)
			k.load(tmp2, v*16, a, b)
			k.FmlaElem(a, k.part(row, v), k.x(row), 0)
			k.FmlaElem(b, k.part(row, v+1), k.x(row), 0)
			k.store(tmp2, v*16, a, b)
		}
		if row < r-1 {
			k.I("ADD %s, %s, %s", outs, tmp2, tmp2)
		}
	}
}

// advance moves on by a block.
func (k *intKernel) advance(r, bytes int, scales ...string) {
	for _, p := range append([]string{w}, scales...) {
		k.I("ADD $%d, %s", bytes, p)
	}
	for row := range r {
		k.I("ADD $%d, %s", k.xBlock, x(row))
	}
}

// describe makes a kernel one of a type, of a shape.
func (k *intKernel) describe(shape int, typ, how string) {
	s := shapes[shape]
	k.vecs, k.maxRows = s.vecs, s.rows
	k.name = fmt.Sprintf("mul%s%s%s", typ, s.suffix, k.level())
	k.doc = fmt.Sprintf("%s multiplies %sa %s panel%s by int8.", k.name, s.part, map[string]string{
		"Q8": "Q8_0", "Q40": "Q4_0", "Q41": "Q4_1", "Q50": "Q5_0", "Q51": "Q5_1",
		"IQ4NL": "IQ4_NL", "MXFP4": "MXFP4",
		"WideQ8": "Q8_0, Q4_0, Q5_0, IQ4_NL or MXFP4", "WideMin": "Q4_1 or Q5_1", "Q4K": "Q4_K", "Q5K": "Q5_K", "Q6K": "Q6_K",
		"Q2K": "Q2_K", "Q3K": "Q3_K",
		"Wide": "Q4_K or Q5_K", "Wide6K": "Q6_K or Q3_K"}[typ], how)
}
