package main

import "github.com/grovellm/grove/internal/_neon/asm"

// A step of Q8_0 is a block of 32 elements; a row of activations is groups of four blocks { 32 int8, int32 } and then the
// group's scale (input.go of package gemm). Weights are bytes of weight+128, which SDOT wants signed: sums start from zero.
const (
	q8Scales = 64 // bytes of scales before a packed block's weights
	q8Block  = q8Scales + 32*32
)

func q8Kernels(f *asm.File) {
	for i := range shapes {
		k := intKernel{kernel: kernel{File: f}, xBlock: 32 + 4, masks: 1}
		k.describe(i, "Q8", "")
		k.q8()
	}
}

func (k *intKernel) q8() {
	k.begin(func() {
		k.arg(tileScale, heads)
		k.I("ADD $%d, %s", q8Scales, w)
		k.setMask(0, 0x80)
	})
	for r := k.maxRows; r >= 1; r-- {
		k.Label(label("rows", r))
		k.start(r)

		k.Label(label("group", r))
		k.each(r, func(row, v int) { k.Zero(k.part(row, v)) })
		k.I("MOVD $%d, %s", blocks, left)
		k.I("CMP %s, %s", left, steps)
		k.I("CSEL LT, %s, %s, %s", steps, left, left)
		k.I("SUB %s, %s, %s", left, steps, steps)

		k.Label(label("block", r))
		k.each(r, func(row, v int) { k.Zero(k.sum(row, v)) })
		for turn := range turns {
			if turn%4 == 0 {
				k.half(r, turn/4)
			}
			if turn < k.vecs {
				k.prefetch(1)
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
			a, b := k.temp(v%4), k.temp(v%4+1)
			k.halves(0, v, a, b)
			k.scale(r, v, a, b)
		}
		k.advance(r, q8Block, heads)
		k.I("SUBS $1, %s", left)
		k.I("BNE %s", label("block", r))
		k.whole(r)
		k.I("CBNZ %s, %s", steps, label("group", r))
		k.I("RET")
	}
}
