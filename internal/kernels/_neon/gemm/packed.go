package main

import "github.com/grovellm/grove/internal/kernels/_neon/asm"

// packedKernels emits what products of two packed matrices need. A panel of the one is the rows of the other: four
// neighbouring ones are a vector.
func packedKernels(f *asm.File) {
	for _, k := range []floatKernel{
		{kernel: kernel{name: "mulPackedF32NEON", doc: "half an f32 panel by rows of another."}, load2: loadF32},
		{kernel: kernel{name: "mulPackedBF16NEON", doc: "half a bf16 panel by rows of another. It leaves what it should have written, and returns 1, if a sum was flushed to zero.",
			flushes: true}, pairs: true},
	} {
		k.File = f
		k.vecs = 4
		k.maxRows = 4
		k.wStep = 128
		k.doc = k.name + " multiplies " + k.doc
		k.generatePacked()
	}
	packPairs(f)
}

func (k *floatKernel) generatePacked() {
	const xs, odd = 16, 17 // the rows' elements of a step, or the even and the odd ones
	k.begin(func() {
		if k.pairs {
			k.I("MOVD $0xffff0000, %s", tmp)
			k.I("VDUP %s, V%d.S4", tmp, k.mask())
			k.flushBegin()
		}
	})
	fma := func(r, v, a, b, x int) {
		for row := range r {
			k.FmlaElem(k.sum(row, v), a, x, row)
			k.FmlaElem(k.sum(row, v+1), b, x, row)
		}
	}
	for r := k.maxRows; r >= 1; r-- {
		k.Label(label("rows", r))
		k.resume(r, k.sum)
		k.Label(label("step", r))
		k.I("FMOVQ (%s), F%d", x(0), xs)
		k.I("ADD $128, %s", x(0))
		if k.pairs {
			k.I("VAND V%d.B16, V%d.B16, V%d.B16", k.mask(), xs, odd)
			k.I("VSHL $16, V%d.S4, V%d.S4", xs, xs)
		}
		for v := 0; v < k.vecs; v += 2 {
			t := k.weight(v * 2)
			k.load(w, v*16, t, t+1)
			if k.pairs {
				k.I("VAND V%d.B16, V%d.B16, V%d.B16", k.mask(), t, t+2)
				k.I("VAND V%d.B16, V%d.B16, V%d.B16", k.mask(), t+1, t+3)
				fma(r, v, t+2, t+3, odd)
				k.I("VSHL $16, V%d.S4, V%d.S4", t, t)
				k.I("VSHL $16, V%d.S4, V%d.S4", t+1, t+1)
			}
			fma(r, v, t, t+1, xs)
		}
		k.I("ADD $128, %s", w)
		k.I("SUBS $1, %s", steps)
		k.I("BNE %s", label("step", r))
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

// packPairs rounds two rows of 32 f32 at a time to bf16 and interleaves them: a step of a bf16
// panel out of rows k and k+1 of the transposed matrix.
func packPairs(f *asm.File) {
	f.Func("packPairsNEON", "packPairsNEON packs so many pairs of rows, stride bytes apart, as steps of a bf16 panel.",
		"(dst *byte, src *float32, stride, pairs int)", 32)
	f.I("MOVD dst+0(FP), R0")
	f.I("MOVD src+8(FP), R1")
	f.I("MOVD stride+16(FP), R2")
	f.I("MOVD pairs+24(FP), R3")
	c := newRounding(f)
	f.Label("loop")
	f.I("ADD R1, R2, R4")
	for v := 0; v < 8; v += 2 {
		f.I("FLDPQ %d(R1), (F0, F1)", v*16)
		f.I("FLDPQ %d(R4), (F2, F3)", v*16)
		for i := range 4 {
			c.round(4+i, i, 8, 9)
		}
		for i := range 2 {
			f.I("VUSHR $16, V%d.S4, V%d.S4", 4+i, 4+i)
			f.I("VORR V%d.B16, V%d.B16, V%d.B16", 4+i, 6+i, 4+i)
		}
		f.I("FSTPQ.P (F4, F5), 32(R0)")
	}
	f.I("ADD R2<<1, R1, R1")
	f.I("SUBS $1, R3")
	f.I("BNE loop")
	f.I("RET")
}
