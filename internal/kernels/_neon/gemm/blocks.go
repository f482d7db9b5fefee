package main

import "github.com/grovellm/grove/internal/kernels/_neon/asm"

// The kernels of the types whose blocks are 32 elements (blocks.go of package gemm has their
// layout). A step is a block; a row of activations is blocks { 32 int8, int32 −128·Σ of them, f32
// scale, f32 −Σ·scale } (input.go of package gemm). The whole sums stay in registers. Bytes of Q8_0 are
// weight+128, which SDOT wants signed: sums start from zero. USMMLA takes them as they are.
const (
	q8X     = 32 + 12
	q8Start = 32
	q8Scale = 36
	q8Sum   = 40
)

// blockQuant is a kernel of one of them. Unpacked, a block has f32 for scales and minimums, and signed bytes.
type blockQuant struct {
	kQuant
	min    bool
	bfloat bool // scales are bf16
}

// The values that elements of IQ4_NL and MXFP4 stand for (package num), as TBL takes them.
var (
	iq4   = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	mxfp4 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

func blockKernels(f *asm.File) {
	for _, t := range []struct {
		name   string
		bits   int
		min    bool
		values *[16]int8
		bfloat bool
	}{
		{name: "Q8", bits: 8}, {name: "Q40", bits: 4}, {name: "Q41", bits: 4, min: true}, {name: "Q50", bits: 5},
		{name: "Q51", bits: 5, min: true}, {name: "IQ4NL", bits: 4, values: &iq4},
		{name: "MXFP4", bits: 4, values: &mxfp4, bfloat: true},
	} {
		quant := func(k intKernel) blockQuant {
			return blockQuant{kQuant{intKernel: k, bits: t.bits, values: t.values}, t.min, t.bfloat}
		}
		for i := range shapes {
			k := quant(intKernel{kernel: kernel{File: f}, xBlock: q8X, masks: 1})
			k.describe(i, t.name, "")
			if t.bits < 8 {
				k.masks = 2
				k.maxRows = min(k.maxRows, 5)
			}
			k.generate()
		}
		for _, mmla := range []bool{false, true} {
			k := quant(intKernel{kernel: kernel{File: f, vecs: 8, maxRows: 1}, masks: 3, mmla: mmla})
			k.unpack("unpack" + t.name + k.level())
		}
		if t.bits == 8 {
			for i := 1; i < len(shapes); i++ {
				k := quant(intKernel{kernel: kernel{File: f}, xBlock: q8X, mmla: true, unsigned: true})
				k.describe(i, t.name, "")
				k.maxRows &^= 1
				k.generate()
			}
		}
	}
	for i := range 4 {
		min, mmla := i%2 == 1, i >= 2
		k := blockQuant{kQuant{intKernel: intKernel{kernel: kernel{File: f}, xBlock: q8X, mmla: mmla}, bits: 8, wide: true},
			min, false}
		k.describe(len(shapes)-1, map[bool]string{false: "WideQ8", true: "WideMin"}[min], ", unpacked,")
		k.generate()
	}
}

// before is the bytes of a block before its elements.
func (k *blockQuant) before() int {
	bytes := 64
	if k.wide {
		bytes = accRow
	}
	if k.min {
		bytes *= 2
	}
	return bytes
}

func (k *blockQuant) block() int {
	if k.bits == 8 {
		return k.before() + turns*words
	}
	return k.before() + kLow + k.high()
}

// setMasks fills the registers of constants that elements takes.
func (k *blockQuant) setMasks() {
	switch {
	case k.unsigned:
	case k.bits == 8:
		k.setMask(0, 0x80)
	default:
		k.kQuant.setMasks()
	}
}

// elements loads a turn of the v-th vector of outputs to a, and of the next to b.
func (k *blockQuant) elements(turn, v, a, b, t int) {
	if k.wide || k.bits < 8 {
		k.kQuant.elements(turn, v, a, b, t)
		return
	}
	k.load(w, turn*words+v*16, a, b)
	k.I("VEOR V%d.B16, V%d.B16, V%d.B16", k.mask(0), a, a)
	k.I("VEOR V%d.B16, V%d.B16, V%d.B16", k.mask(0), b, b)
}

func (k *blockQuant) generate() {
	k.begin(func() {
		if k.wide {
			k.I("ADD $%d, %s", k.before(), w)
			return
		}
		k.arg(tileScale, heads)
		k.I("ADD $%d, %s", k.before(), w)
		k.setMasks()
	})
	for r := k.maxRows; r >= 1; r-- {
		k.Label(label("rows", r))
		k.resume(r, k.part)
		k.Label(label("block", r))
		k.begins(r)
		for turn := range turns {
			if turn%4 == 0 {
				k.half(r, turn/4)
			}
			if turn < k.vecs {
				k.prefetch(1)
			}
			if k.unsigned { // 6 rows leave two registers
				for v := range k.vecs {
					a := k.temp(0)
					b := k.temp(1)
					zip := turn%2 + 1
					k.I("FMOVQ %d(%s), F%d", turn&^1*words+v*16, w, a)
					k.I("FMOVQ %d(%s), F%d", (turn|1)*words+v*16, w, b)
					k.I("VZIP%d V%d.S4, V%d.S4, V%d.S4", zip, b, a, a)
					k.dot(r, v, turn, a)
				}
				continue
			}
			if k.vecs == 2 && k.masks == 1 { // 6 rows leave one register
				for v := range k.vecs {
					k.I("FMOVQ %d(%s), F%d", turn*words+v*16, w, k.temp(0))
					k.I("VEOR V%d.B16, V%d.B16, V%d.B16", k.mask(0), k.temp(0), k.temp(0))
					k.dot(r, v, turn, k.temp(0))
				}
				continue
			}
			for v := 0; v < k.vecs; v += 2 {
				a, b, t := k.temps(v)
				k.elements(turn, v, a, b, t)
				k.dot(r, v, turn, a, b)
			}
		}
		for v := 0; v < k.vecs; v += 2 {
			a, b := k.temp(0), k.temp(1)
			k.loadScales(0, v, a, b)
			k.scaleBlock(r, v, a, b)
			if k.min {
				k.loadScales(1, v, a, b)
				k.minimums(r, v, a, b)
			}
		}
		if k.wide {
			k.advance(r, k.block())
		} else {
			k.advance(r, k.block(), heads)
		}
		k.I("SUBS $1, %s", steps)
		k.I("BNE %s", label("block", r))
		k.finish(r, k.part)
		k.I("RET")
	}
}

// begins starts the sums of a block: without a minimum, from what is taken off the elements.
func (k *blockQuant) begins(r int) {
	if k.unsigned {
		for row := 0; row < r; row += 2 {
			a, b := k.loadRows(r, row, "FMOVS", q8Start)
			k.I("VZIP1 V%d.S4, V%d.S4, V%d.S4", b, a, a)
			for v := range k.vecs {
				k.I("VDUP V%d.D[0], V%d.D2", a, k.sum(row, v))
				k.I("VDUP V%d.D[0], V%d.D2", a, k.sum(row+1, v))
			}
		}
		return
	}
	for row := range k.sums(r) {
		start := k.bits < 8 && !k.min && k.values == nil
		if start {
			k.I("MOVW %d(%s), %s", q8Start, x(row), tmp)
			k.I("ASR $%d, %s, %s", 8-k.bits, tmp, tmp)
		}
		for v := range k.vecs {
			if start {
				k.I("VDUP %s, V%d.S4", tmp, k.sum(row, v))
			} else {
				k.Zero(k.sum(row, v))
			}
		}
	}
}

// loadScales loads the scales of the v-th vector of outputs, and of the next; or, the second of a
// block's, the minimums.
func (k *blockQuant) loadScales(which, v, a, b int) {
	if k.wide {
		k.load(w, which*accRow-k.before()+v*16, a, b)
	} else {
		k.scaleBits(which*64, v, a, b)
	}
}

// scaleBits loads the scales or minimums at off of the v-th vector of outputs, and of the next, as f32.
func (k *blockQuant) scaleBits(off, v, a, b int) {
	if !k.bfloat {
		k.halves(off, v, a, b)
		return
	}
	k.I("FMOVQ %d(%s), F%d", off+v*8, heads, a)
	k.I("VUXTL2 V%d.H8, V%d.S4", a, b)
	k.I("VUXTL V%d.H4, V%d.S4", a, a)
	for _, e := range []int{a, b} {
		k.I("VSHL $16, V%d.S4, V%d.S4", e, e)
	}
}

// scaleBlock adds the sums, times a and b and the scale of the row's block, to the whole sums.
func (k *blockQuant) scaleBlock(r, v, a, b int) {
	d := k.temp(2)
	t := k.temp(3)
	u := k.temp(4)
	for row := range r {
		k.I("FMOVS %d(%s), F%d", q8Scale, x(row), d)
		k.FmulElem(t, a, d, 0)
		k.FmulElem(u, b, d, 0)
		k.float(r, row, v)
		k.Fmla(k.part(row, v), k.sum(row, v), t)
		k.Fmla(k.part(row, v+1), k.sum(row, v+1), u)
	}
}

// minimums adds a and b, times the sum of the row's block, to the whole sums.
func (k *blockQuant) minimums(r, v, a, b int) {
	t := k.temp(3)
	for row := range r {
		k.I("FMOVS %d(%s), F%d", q8Sum, x(row), t)
		k.FmlsElem(k.part(row, v), a, t, 0) // the sum is negative
		k.FmlsElem(k.part(row, v+1), b, t, 0)
	}
}

const unpacking = "(dst, src *byte, n int)"

// unpack emits the function that makes signed bytes of a panel's elements, and f32 of its scales, for many rows.
func (k *blockQuant) unpack(name string) {
	k.Func(name, name+" unpacks n blocks of 32 of a panel.", unpacking, 24)
	const dst = "R2"
	k.I("MOVD dst+0(FP), %s", dst)
	k.I("MOVD src+8(FP), %s", heads)
	k.I("MOVD n+16(FP), %s", steps)
	k.setMasks()
	if k.bits < 8 && k.values == nil {
		k.setMask(2, 1<<(k.bits-1))
	}
	k.Label("block")
	for at := 0; at < k.before(); at += 64 {
		for v := 0; v < k.vecs; v += 2 {
			k.scaleBits(at, v, v, v+1)
			k.store(dst, 2*at+v*16, v, v+1)
		}
	}
	k.I("ADD $%d, %s, %s", k.before(), heads, w)
	k.I("ADD $%d, %s", 2*k.before(), dst)
	k.storeElements(dst, func(turn, v, a, b, t int) {
		k.elements(turn, v, a, b, t)
		if k.bits < 8 && !k.min && k.values == nil {
			k.I("VSUB V%d.B16, V%d.B16, V%d.B16", k.mask(2), a, a)
			k.I("VSUB V%d.B16, V%d.B16, V%d.B16", k.mask(2), b, b)
		}
	})
	k.I("ADD $%d, %s", k.block(), heads)
	k.I("ADD $%d, %s", turns*words, dst)
	k.I("SUBS $1, %s", steps)
	k.I("BNE block")
	k.I("RET")
}
