package main

import "fmt"

// What kernels of Q8_0 and of the K types have in common: blocks of 32 elements in turns, four elements of every output; sums
// of a block in integers, parts (of a group; of Q8_0, the whole sums) and the weights' scales in f32. The whole sums of the K types
// stay where the results go, for a group touches them once.
const (
	words  = 128 // bytes of four elements of a panel's outputs
	turns  = 8   // in a block
	blocks = 4   // in a group
)

// shapes are the kernels of a type: for one row of a whole panel, for few of half a one, and for more of a quarter: 6, or 5
// where elements want more registers.
var shapes = []struct {
	suffix, part string
	vecs, rows   int
}{
	{"One", "", 8, 1},
	{"Few", "half ", 4, 3},
	{"", "a quarter of ", 2, 6},
}

// intKernel is a kernel of integers.
type intKernel struct {
	kernel
	xBlock int // bytes of a block of activations
	masks  int // vector registers of constants
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
	for row := range r {
		k.I("FMOVQ %d(%s), F%d", h*16, x(row), k.x(row))
	}
}

// dot adds the products of neighbouring vectors of weights, from the v-th on, and the activations of a turn.
func (k *intKernel) dot(r, v, turn int, ws ...int) {
	for row := range r {
		for i, wv := range ws {
			k.SdotElem(k.sum(row, v+i), wv, k.x(row), turn%4)
		}
	}
}

// scale adds the sums, times a and b, to the parts.
func (k *intKernel) scale(r, v, a, b int) {
	for row := range r {
		k.IntToFloat(k.sum(row, v), k.sum(row, v))
		k.IntToFloat(k.sum(row, v+1), k.sum(row, v+1))
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
	k.name = fmt.Sprintf("mul%s%sNEON", typ, s.suffix)
	k.doc = fmt.Sprintf("%s multiplies %sa %s panel%s by int8.", k.name, s.part, map[string]string{
		"Q8": "Q8_0", "Q40": "Q4_0", "Q41": "Q4_1", "Q50": "Q5_0", "Q51": "Q5_1",
		"IQ4NL": "IQ4_NL", "MXFP4": "MXFP4",
		"WideQ8": "Q8_0, Q4_0, Q5_0, IQ4_NL or MXFP4", "WideMin": "Q4_1 or Q5_1", "Q4K": "Q4_K", "Q5K": "Q5_K", "Q6K": "Q6_K", "Wide": "Q4_K or Q5_K", "Wide6K": "Q6_K"}[typ], how)
}
