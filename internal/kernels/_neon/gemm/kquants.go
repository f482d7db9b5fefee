package main

import (
	"fmt"

	"github.com/grovellm/grove/internal/kernels/_neon/asm"
)

// The kernels of the K types (kquants.go of package gemm has their layout). A step is 256 elements:
// two groups of four blocks.
const (
	kX      = 32 + 12 // bytes of a block of activations
	kHalves = 32      // −32·Σ of its halves
	kSum    = 40      // −Σ
	kScales = 64      // bytes of scales before a packed block's elements
	kLow    = 4 * words
)

// kQuant is a kernel of one of them.
type kQuant struct {
	intKernel
	bits   int
	values *[16]int8 // what elements stand for; nil: themselves
	// unpacked: a block is [2][Panel]f32, what sums and minimums or the halves' sums are scaled by, and [8][Panel][4]u8
	wide bool
}

// head is the bytes of a step's d and dmin, low those of a block's low bits, high those of the bits above.
func (k *kQuant) head() int { return map[int]int{2: 128, 3: 64, 4: 128, 5: 128, 6: 64}[k.bits] }

func (k *kQuant) low() int {
	if k.few() {
		return kLow / 2
	}
	return kLow
}

func (k *kQuant) high() int {
	if k.few() {
		return (k.bits - 2) * words
	}
	return (k.bits - 4) * words
}

// few reports whether blocks have two low bits for each element instead of four.
func (k *kQuant) few() bool { return k.bits < 4 }

// byHalves reports whether the halves of a block have factors of their own.
func (k *kQuant) byHalves() bool { return k.few() || k.bits == 6 }

// zero is what is subtracted from elements.
func (k *kQuant) zero() int { return map[int]int{3: 4, 6: 32}[k.bits] }

func (k *kQuant) block() int { return kScales + k.low() + k.high() }

const (
	wideScales = 2 * accRow
	wideBlock  = wideScales + turns*words
)

func kKernels(f *asm.File) {
	for _, t := range []struct {
		name, how  string
		bits       int
		wide, mmla bool
	}{
		{"Q2K", "", 2, false, false}, {"Q3K", "", 3, false, false},
		{"Q4K", "", 4, false, false}, {"Q5K", "", 5, false, false}, {"Q6K", "", 6, false, false},
		{"Wide", ", unpacked,", 4, true, false}, {"Wide6K", ", unpacked,", 6, true, false}, // Q5_K is then as Q4_K
		{"Wide", ", unpacked,", 4, true, true}, {"Wide6K", ", unpacked,", 6, true, true},
	} {
		for i := range shapes {
			if t.wide && shapes[i].suffix != "" { // of many rows alone
				continue
			}
			k := kQuant{intKernel: intKernel{kernel: kernel{File: f}, xBlock: kX, masks: 2, mmla: t.mmla},
				bits: t.bits, wide: t.wide}
			k.describe(i, t.name, t.how)
			if t.wide {
				k.masks = 0
			} else {
				k.maxRows = min(k.maxRows, 5)
			}
			k.generate()
		}
	}
	for _, bits := range []int{3, 4, 5, 6} {
		for _, mmla := range []bool{false, true} {
			k := kQuant{intKernel: intKernel{kernel: kernel{File: f, vecs: 8, maxRows: 1}, masks: 3, mmla: mmla}, bits: bits}
			k.unpack()
		}
	}
}

func (k *kQuant) setMasks() {
	k.setMask(0, 0x0f)
	switch k.bits {
	case 2:
		k.setMask(1, 0x0f) // of scales
		k.setMask(0, 0x03)
	case 3:
		k.setMask(0, 0x03)
		k.setMask(1, 0x04)
	case 5:
		k.setMask(1, 0x10)
	case 6:
		k.setMask(1, 0x30)
	}
	if v := k.values; v != nil {
		for half := range 2 {
			word := uint64(0)
			for i, b := range v[8*half:][:8] {
				word |= uint64(uint8(b)) << (8 * i)
			}
			k.I("MOVD $%#x, %s", word, tmp)
			k.I("VMOV %s, V%d.D[%d]", tmp, k.mask(1), half)
		}
	}
}

// prefetches in a block: a line of 128 bytes, or two of 64, of the kernel's share of it.
func (k *kQuant) prefetches() int {
	return max(1, (k.block()/128+1)*k.vecs/8)
}

func (k *kQuant) generate() {
	k.begin(func() {
		if k.wide {
			k.I("ADD $%d, %s", wideScales, w)
			return
		}
		k.arg(tileScale, heads)
		// Of a part's outputs elements are 4 bytes, d 2 and scales 1.
		k.I("SUB %s, %s, %s", heads, w, tmp)
		k.I("SUB %s>>1, %s, %s", tmp, heads, small)
		k.I("ADD $%d, %s", k.head()+kScales, w)
		k.I("ADD $%d, %s", k.head(), small)
		k.setMasks()
	})
	for r := k.maxRows; r >= 1; r-- {
		k.Label(label("rows", r))
		k.start(r)
		k.Label(label("step", r))
		k.I("MOVD $2, %s", group)
		k.Label(label("group", r))
		k.each(r, func(row, v int) { k.Zero(k.part(row, v)) })
		k.I("MOVD $%d, %s", blocks, left)

		k.Label(label("block", r))
		for turn := range turns {
			if turn == 0 || k.byHalves() && turn == turns/2 {
				k.begins(r, turn/4)
			}
			if turn%4 == 0 {
				k.half(r, turn/4)
			}
			if turn < k.prefetches() {
				k.prefetch(1)
			}
			for v := 0; v < k.vecs; v += 2 {
				a, b, t := k.temps(v)
				k.elements(turn, v, a, b, t)
				k.dot(r, v, turn, a, b)
			}
			if k.byHalves() && turn%4 == 3 {
				k.scales(r, turn/4)
				if k.bits == 2 {
					k.minimums(r, turn/4)
				}
			}
		}
		if !k.byHalves() {
			k.scales(r, 0)
			k.minimums(r, 0)
		}
		if k.wide {
			k.advance(r, wideBlock)
		} else {
			k.advance(r, k.block(), small)
		}
		k.I("SUBS $1, %s", left)
		k.I("BNE %s", label("block", r))
		k.whole(r)
		k.I("SUBS $1, %s", group)
		k.I("BNE %s", label("group", r))
		if !k.wide {
			k.I("ADD $%d, %s", k.head(), w)
			k.I("ADD $%d, %s", k.head(), small)
			k.I("ADD $%d, %s", k.head()+2*blocks*k.block(), heads)
		}
		k.I("SUBS $1, %s", steps)
		k.I("BNE %s", label("step", r))
		k.I("RET")
	}
}

// temps are registers for two vectors of elements and one for their upper bits.
func (k *kQuant) temps(v int) (a, b, t int) {
	if k.vecs == 8 {
		i := v / 2 % 3 * 3
		return k.temp(i), k.temp(i + 1), k.temp(i + 2)
	}
	return k.temp(0), k.temp(1), k.temp(2)
}

// begins starts the sums of a block, or of its half h: of Q6_K and Q3_K from −32·Σ and −4·Σ, as elements are packed
// without what is subtracted from them. For SMMLA they are unpacked with it.
func (k *kQuant) begins(r, h int) {
	for row := range k.sums(r) {
		from := k.zero() > 0 && !k.mmla
		switch {
		case from && k.bits == 3:
			k.I("MOVW %d(%s), %s", kHalves+4*h, x(row), tmp)
			k.I("ASR $3, %s, %s", tmp, tmp)
			k.I("VMOV %s, V%d.S[0]", tmp, k.temp(0))
		case from:
			k.I("FMOVS %d(%s), F%d", kHalves+4*h, x(row), k.temp(0))
		}
		for v := range k.vecs {
			if from {
				k.I("VDUP V%d.S[0], V%d.S4", k.temp(0), k.sum(row, v))
			} else {
				k.Zero(k.sum(row, v))
			}
		}
	}
}

// elements loads a turn of the v-th vector of outputs to a, and of the next to b.
func (k *kQuant) elements(turn, v, a, b, t int) {
	if k.wide {
		k.load(w, turn*words+v*16, a, b)
		return
	}
	each := 4 // low bits of an element
	first, bit := turn%4*words, turn/4*4
	if k.few() {
		each = 2
		first, bit = turn/4*words, turn%4*2
	}
	k.load(w, first+v*16, a, b)
	for i, e := range []int{a, b} {
		if bit > 0 {
			k.I("VUSHR $%d, V%d.B16, V%d.B16", bit, e, e)
		}
		if bit+each < 8 {
			k.I("VAND V%d.B16, V%d.B16, V%d.B16", k.mask(0), e, e)
		}
		if k.values != nil {
			k.I("VTBL V%d.B16, [V%d.B16], V%d.B16", e, k.mask(1), e)
		}
		if k.high() == 0 {
			continue
		}
		at, right := k.low(), turn-each
		if k.bits == 6 {
			at, right = kLow+turn/4*words, turn%4*2-4
		}
		k.I("FMOVQ %d(%s), F%d", at+(v+i)*16, w, t)
		switch {
		case right < 0:
			k.I("VSHL $%d, V%d.B16, V%d.B16", -right, t, t)
		case right > 0:
			k.I("VUSHR $%d, V%d.B16, V%d.B16", right, t, t)
		}
		k.I("VBIT V%d.B16, V%d.B16, V%d.B16", k.mask(1), t, e)
	}
}

// factor makes the products of a block's integers and of the f16 in the head: the first of a block's, or the second.
// Q2_K has four: scales of both halves, then minimums.
func (k *kQuant) factor(v, which, a, b, t, u int) {
	if k.wide {
		k.load(w, which*accRow-wideScales+v*16, a, b)
		return
	}
	scales, head := which*32, which*64
	switch {
	case k.bits == 2:
		scales, head = which%2*32, which/2*64
	case k.byHalves(): // with one f16
		head = 0
	}
	k.I("FMOVD %d(%s), F%d", scales+v*4, small, a)
	switch {
	case k.bits == 2 && which > 1:
		k.I("VUSHR $4, V%d.B8, V%d.B8", a, a)
	case k.bits == 2:
		k.I("VAND V%d.B8, V%d.B8, V%d.B8", k.mask(1), a, a)
	}
	if k.zero() > 0 {
		k.SxtlB(a, a)
		k.Sxtl2H(b, a)
		k.SxtlH(a, a)
		k.IntToFloat(a, a)
		k.IntToFloat(b, b)
	} else {
		k.I("VUXTL V%d.B8, V%d.H8", a, a)
		k.I("VUXTL2 V%d.H8, V%d.S4", a, b)
		k.I("VUXTL V%d.H4, V%d.S4", a, a)
		k.UintToFloat(a, a)
		k.UintToFloat(b, b)
	}
	k.halves(head, v, t, u)
	k.Fmul(a, a, t)
	k.Fmul(b, b, u)
}

// scales adds the sums of a block, or of its half h, to the parts.
func (k *kQuant) scales(r, h int) {
	a := k.temp(0)
	b := k.temp(1)
	t := k.temp(2)
	u := k.temp(3)
	for v := 0; v < k.vecs; v += 2 {
		k.factor(v, h, a, b, t, u)
		k.scale(r, v, a, b)
	}
}

// minimums adds those of a block, or of Q2_K's half h, times its −Σ, to the parts.
func (k *kQuant) minimums(r, h int) {
	a := k.temp(0)
	b := k.temp(1)
	t := k.temp(2)
	u := k.temp(3)
	for v := 0; v < k.vecs; v += 2 {
		if k.bits == 2 {
			k.factor(v, 2+h, a, b, t, u)
		} else {
			k.factor(v, 1, a, b, t, u)
		}
		for row := range r {
			if k.bits == 2 {
				k.I("FMOVS %d(%s), F%d", kHalves+4*h, x(row), t)
				k.IntToFloat32nd(t, t)
			} else {
				k.I("FMOVS %d(%s), F%d", kSum, x(row), t)
			}
			k.FmlaElem(k.part(row, v), a, t, 0)
			k.FmlaElem(k.part(row, v+1), b, t, 0)
		}
	}
}

// storeElements stores the elements of a block as bytes. For SMMLA those of an odd turn change
// places with half of the even one's before it.
func (k *kQuant) storeElements(dst string, elements func(turn, v, a, b, t int)) {
	for turn := range turns {
		for v := 0; v < k.vecs; v += 2 {
			a := v % 4 * 2
			switch {
			case !k.mmla:
				elements(turn, v, a, a+1, a+2)
				k.store(dst, turn*words+v*16, a, a+1)
			case turn%2 == 0:
				a *= 2
				elements(turn, v, a, a+1, a+2)
				elements(turn+1, v, a+3, a+4, a+2)
				k.zip("S4", a, a+3, a+5, a)
				k.zip("S4", a+1, a+4, a+6, a+1)
				k.store(dst, turn*words+v*16, a+5, a+6)
				k.store(dst, (turn+1)*words+v*16, a, a+1)
			}
		}
	}
}

// unpack emits the function that makes bytes of a panel's elements, and f32 of its scales: for many
// rows that is less work than every few of them doing it anew.
func (k *kQuant) unpack() {
	k.name = fmt.Sprintf("unpackQ%dK%s", k.bits, k.level())
	k.Func(k.name, k.name+" unpacks n blocks of 256 of a panel.", unpacking, 24)
	const dst = "R2"
	k.I("MOVD dst+0(FP), %s", dst)
	k.I("MOVD src+8(FP), %s", heads)
	k.I("MOVD n+16(FP), %s", steps)
	k.setMasks()
	// Kernels of Q6_K multiply elements with 32 subtracted, or without SMMLA subtract it themselves.
	added := 0
	switch {
	case k.mmla:
		added = -k.zero()
	case k.bits == 3:
		added = 32 - k.zero()
	}
	if added != 0 {
		k.setMask(2, added&255)
	}
	k.Label("step")
	k.I("ADD $%d, %s, %s", k.head(), heads, small)
	k.I("MOVD $%d, %s", 2*blocks, left)
	k.Label("block")
	for which := range 2 {
		for v := 0; v < k.vecs; v += 2 {
			a := v % 4 * 2
			k.factor(v, which, a, a+1, a+2, a+3)
			k.store(dst, which*accRow+v*16, a, a+1)
		}
	}
	k.I("ADD $%d, %s, %s", kScales, small, w)
	k.I("ADD $%d, %s", wideScales, dst)
	k.storeElements(dst, func(turn, v, a, b, t int) {
		k.elements(turn, v, a, b, t)
		if added != 0 {
			k.I("VADD V%d.B16, V%d.B16, V%d.B16", k.mask(2), a, a)
			k.I("VADD V%d.B16, V%d.B16, V%d.B16", k.mask(2), b, b)
		}
	})
	k.I("ADD $%d, %s", k.block(), small)
	k.I("ADD $%d, %s", turns*words, dst)
	k.I("SUBS $1, %s", left)
	k.I("BNE block")
	k.I("MOVD %s, %s", small, heads)
	k.I("SUBS $1, %s", steps)
	k.I("BNE step")
	k.I("RET")
}
