package main

import "github.com/grovellm/grove/internal/_neon/asm"

// A step of Q8_0 is a block of 32 elements; a row of activations is blocks { 32 int8, int32, f32 scale } (input.go of package
// gemm). The whole sums stay in registers. Weights are bytes of weight+128, which SDOT wants signed: sums start from zero.
const (
	q8X      = 32 + 8
	q8Scale  = 36
	q8Scales = 64 // bytes of scales before a packed block's weights
	q8Block  = q8Scales + turns*words
	q8Wide   = accRow + turns*words // unpacked, with f32 for scales, and signed
)

func q8Kernels(f *asm.File) {
	for i := range shapes {
		k := intKernel{kernel: kernel{File: f}, xBlock: q8X, masks: 1}
		k.describe(i, "Q8", "")
		k.q8(false)
	}
	k := intKernel{kernel: kernel{File: f}, xBlock: q8X}
	k.describe(len(shapes)-1, "WideQ8", ", unpacked,")
	k.q8(true)
	unpackQ8(f)
}

func (k *intKernel) q8(wide bool) {
	k.begin(func() {
		if wide {
			k.I("ADD $%d, %s", accRow, w)
			return
		}
		k.arg(tileScale, heads)
		k.I("ADD $%d, %s", q8Scales, w)
		k.setMask(0, 0x80)
	})
	for r := k.maxRows; r >= 1; r-- {
		k.Label(label("rows", r))
		k.resume(r, k.part)
		k.Label(label("block", r))
		k.each(r, func(row, v int) { k.Zero(k.sum(row, v)) })
		for turn := range turns {
			if turn%4 == 0 {
				k.half(r, turn/4)
			}
			if turn < k.vecs {
				k.prefetch(1)
			}
			if wide {
				k.load(w, turn*words, k.temp(0), k.temp(1))
				k.dot(r, 0, turn, k.temp(0), k.temp(1))
				continue
			}
			if k.vecs == 2 { // 6 rows leave one register
				for v := range k.vecs {
					k.I("FMOVQ %d(%s), F%d", turn*words+v*16, w, k.temp(0))
					k.I("VEOR V%d.B16, V%d.B16, V%d.B16", k.mask(0), k.temp(0), k.temp(0))
					k.dot(r, v, turn, k.temp(0))
				}
				continue
			}
			for v := 0; v < k.vecs; v += 2 {
				a, b := k.temp(v%4), k.temp(v%4+1)
				k.load(w, turn*words+v*16, a, b)
				k.I("VEOR V%d.B16, V%d.B16, V%d.B16", k.mask(0), a, a)
				k.I("VEOR V%d.B16, V%d.B16, V%d.B16", k.mask(0), b, b)
				k.dot(r, v, turn, a, b)
			}
		}
		for v := 0; v < k.vecs; v += 2 {
			a, b := k.temp(0), k.temp(1)
			if wide {
				k.load(w, v*16-accRow, a, b)
			} else {
				k.halves(0, v, a, b)
			}
			k.scaleBlock(r, v, a, b)
		}
		if wide {
			k.advance(r, q8Wide)
		} else {
			k.advance(r, q8Block, heads)
		}
		k.I("SUBS $1, %s", steps)
		k.I("BNE %s", label("block", r))
		k.finish(r, k.part)
		k.I("RET")
	}
}

// scaleBlock adds the sums, times a and b and the scale of the row's block, to the whole sums.
func (k *intKernel) scaleBlock(r, v, a, b int) {
	d, t, u := k.temp(2), k.temp(3), k.temp(4)
	for row := range r {
		k.I("FMOVS %d(%s), F%d", q8Scale, x(row), d)
		k.FmulElem(t, a, d, 0)
		k.FmulElem(u, b, d, 0)
		k.IntToFloat(k.sum(row, v), k.sum(row, v))
		k.IntToFloat(k.sum(row, v+1), k.sum(row, v+1))
		k.Fmla(k.part(row, v), k.sum(row, v), t)
		k.Fmla(k.part(row, v+1), k.sum(row, v+1), u)
	}
}

// unpackQ8 emits the function that makes signed bytes of a panel's weights, and f32 of its scales, for many rows.
func unpackQ8(f *asm.File) {
	k := intKernel{kernel: kernel{File: f, vecs: 8, maxRows: 1}, masks: 1}
	k.Func("unpackQ8NEON", "unpackQ8NEON unpacks n blocks of 32 of a panel.", 24)
	const dst = "R2"
	k.I("MOVD dst+0(FP), %s", dst)
	k.I("MOVD src+8(FP), %s", heads)
	k.I("MOVD n+16(FP), %s", steps)
	k.setMask(0, 0x80)
	k.Label("block")
	for v := 0; v < k.vecs; v += 2 {
		k.halves(0, v, v, v+1)
		k.store(dst, v*16, v, v+1)
	}
	k.I("ADD $%d, %s, %s", q8Scales, heads, w)
	k.I("ADD $%d, %s", accRow, dst)
	for turn := range turns {
		for v := 0; v < k.vecs; v += 2 {
			k.load(w, turn*words+v*16, v, v+1)
			k.I("VEOR V%d.B16, V%d.B16, V%d.B16", k.mask(0), v, v)
			k.I("VEOR V%d.B16, V%d.B16, V%d.B16", k.mask(0), v+1, v+1)
			k.store(dst, turn*words+v*16, v, v+1)
		}
	}
	k.I("ADD $%d, %s", q8Block, heads)
	k.I("ADD $%d, %s", turns*words, dst)
	k.I("SUBS $1, %s", steps)
	k.I("BNE block")
	k.I("RET")
}
