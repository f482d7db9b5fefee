package main

import "github.com/grovellm/grove/internal/kernels/_neon/asm"

// floatKernel is a kernel whose steps are fused multiply-adds, by one element of a vector of activations.
type floatKernel struct {
	kernel
	wStep, turn, prefetches int
	pairs                   bool // two elements in a step: bf16
	load2                   func(k *floatKernel, at int, v, t int) (a, b int)
}

// floatKernels emits those of F32, F16 and BF16: for a few rows of a whole panel, and for more of
// half a one. 3·8 sums, or 6·4, leave room for the activations of a turn, a vector for each row,
// and weights.
func floatKernels(f *asm.File) {
	for _, k := range []floatKernel{
		{kernel: kernel{name: "mulF32", doc: "an f32 panel by f32."}, wStep: 128, turn: 4, load2: loadF32},
		{kernel: kernel{name: "mulF16", doc: "an f16 panel by f32."}, wStep: 64, turn: 4, load2: loadF16},
		{kernel: kernel{name: "mulBF16", doc: "a bf16 panel by f32 rounded to bf16. It leaves what it should have written, and returns 1, if a sum was flushed to zero.", flushes: true},
			wStep: 128, turn: 2, pairs: true},
	} {
		k.File = f
		few := k
		few.vecs, few.maxRows = 8, 3
		few.name, few.doc = k.name+"FewNEON", k.name+"FewNEON multiplies "+k.doc
		few.prefetches = k.turn * k.wStep / 128
		few.generate()
		k.vecs, k.maxRows = 4, 6
		if k.pairs {
			k.maxRows = 5 // both elements of a pair want registers
		}
		k.name, k.doc = k.name+"NEON", k.name+"NEON multiplies half "+k.doc
		k.prefetches = max(1, few.prefetches/2)
		k.generate()
	}
}

// Vector registers above the sums.
func (k *floatKernel) x(row int) int { return k.maxRows*k.vecs + row }
func (k *floatKernel) weight(i int) int {
	if k.pairs {
		return k.x(k.maxRows) + 1 + i
	}
	return k.x(k.maxRows) + i
}
func (k *floatKernel) mask() int { return k.x(k.maxRows) }

func loadF32(k *floatKernel, at, v, t int) (a, b int) {
	k.load(w, at+v*16, t, t+1)
	return t, t + 1
}

func loadF16(k *floatKernel, at, v, t int) (a, b int) {
	k.I("FMOVQ %d(%s), F%d", at+v*8, w, t+1)
	k.Fcvtl(t, t+1)
	k.Fcvtl2(t+1, t+1)
	return t, t + 1
}

// step multiplies the weights at an offset by element e of every row's activations; of bf16 by e+1,
// then e: the odd weight of each pair is the word, its low half cleared, the even one is shifted
// up.
func (k *floatKernel) step(r, at, e int) {
	fma := func(v, a, b, e int) {
		for row := range r {
			k.FmlaElem(k.sum(row, v), a, k.x(row), e)
			k.FmlaElem(k.sum(row, v+1), b, k.x(row), e)
		}
	}
	for v := 0; v < k.vecs; v += 2 {
		if !k.pairs {
			room := (32 - k.weight(0)) / 2
			a, b := k.load2(k, at, v, k.weight(v/2%room*2))
			fma(v, a, b, e)
			continue
		}
		a := k.weight(0)
		b := k.weight(1)
		oddA := k.weight(2)
		oddB := k.weight(3)
		k.load(w, at+v*16, a, b)
		k.I("VAND V%d.B16, V%d.B16, V%d.B16", k.mask(), a, oddA)
		k.I("VAND V%d.B16, V%d.B16, V%d.B16", k.mask(), b, oddB)
		fma(v, oddA, oddB, e+1)
		k.I("VSHL $16, V%d.S4, V%d.S4", a, a)
		k.I("VSHL $16, V%d.S4, V%d.S4", b, b)
		fma(v, a, b, e)
	}
}

// elements are those of activations in a step.
func (k *floatKernel) elements() int {
	if k.pairs {
		return 2
	}
	return 1
}

func (k *floatKernel) generate() {
	k.begin(func() {
		if k.pairs {
			k.I("MOVD $0xffff0000, %s", tmp)
			k.I("VDUP %s, V%d.S4", tmp, k.mask())
			k.flushBegin()
		}
	})
	for r := k.maxRows; r >= 1; r-- {
		k.Label(label("rows", r))
		k.resume(r, k.sum)
		k.I("SUBS $%d, %s", k.turn, steps)
		k.I("BLT %s", label("tail", r))
		k.Label(label("turn", r))
		k.prefetch(k.prefetches)
		for row := range r {
			k.I("FMOVQ.P 16(%s), F%d", x(row), k.x(row))
		}
		for u := range k.turn {
			k.step(r, u*k.wStep, u*k.elements())
		}
		k.I("ADD $%d, %s", k.turn*k.wStep, w)
		k.I("SUBS $%d, %s", k.turn, steps)
		k.I("BGE %s", label("turn", r))
		k.Label(label("tail", r))
		k.I("ADDS $%d, %s", k.turn, steps)
		k.I("BEQ %s", label("done", r))
		k.Label(label("one", r))
		for row := range r {
			if k.pairs {
				k.I("FMOVD.P 8(%s), F%d", x(row), k.x(row))
			} else {
				k.I("FMOVS.P 4(%s), F%d", x(row), k.x(row))
			}
		}
		k.step(r, 0, 0)
		k.I("ADD $%d, %s", k.wStep, w)
		k.I("SUBS $1, %s", steps)
		k.I("BNE %s", label("one", r))
		k.Label(label("done", r))
		if k.pairs {
			k.flushEnd("flushed")
		}
		k.finish(r, k.sum)
		if k.pairs {
			k.I("MOVD ZR, flushed+8(FP)")
		}
		k.I("RET")
	}
	k.flushed()
}

// flushed is the end of a kernel where a result was flushed.
func (k *floatKernel) flushed() {
	if !k.pairs {
		return
	}
	k.Label("flushed")
	k.I("MOVD $1, %s", tmp)
	k.I("MOVD %s, flushed+8(FP)", tmp)
	k.I("RET")
}

// The modes of arithmetic: what the caller had.
const (
	fpcr = "R21"
	fpsr = "R22"
)

// flushBegin has subnormal operands taken as zero, and results too. The definition asks whether a
// result is subnormal after it is rounded, this mode before that: a difference for results just
// under 2^-126, so that whether any was flushed is noted.
func (k *kernel) flushBegin() {
	k.I("MRS FPCR, %s", fpcr)
	k.I("MRS FPSR, %s", fpsr)
	k.I("BIC $8, %s, %s", fpsr, tmp) // UFC
	k.I("MSR %s, FPSR", tmp)
	k.I("ORR $(1<<24), %s, %s", fpcr, tmp) // FZ
	k.I("MSR %s, FPCR", tmp)
}

// flushEnd puts the modes back and goes to a label if a result was flushed.
func (k *kernel) flushEnd(flushed string) {
	k.I("MRS FPSR, %s", tmp)
	k.I("MSR %s, FPSR", fpsr)
	k.I("MSR %s, FPCR", fpcr)
	k.I("TBNZ $3, %s, %s", tmp, flushed)
}
