package main

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/_neon/asm"
)

func convertKernels(f *asm.File) {
	round(f)
	quantize(f, "quantizeNEON", q8X, 1)
	quantize(f, "quantizeKNEON", kX, blocks)
}

// rounding is f32 to bf16 in the f32 format: u + 0x7fff + (bit 16 of u), the low half cleared. A
// subnormal is zero before rounding; a NaN is made quiet and not rounded, as the carry might make
// it an infinity or a zero.
type rounding struct {
	*asm.File
	exp, sign, half, high, one, quiet int
}

// newRounding puts the constants into registers from V24 on.
func newRounding(f *asm.File) rounding {
	c := rounding{f, 24, 25, 26, 27, 28, 29}
	for i, v := range []uint32{0x7f800000, 0x80000000, 0x7fff, 0xffff0000, 1, 0x400000} {
		f.I("MOVD $0x%08x, R5", v)
		f.I("VDUP R5, V%d.S4", 24+i)
	}
	return c
}

// round rounds u to r, with two registers more.
func (c rounding) round(r, u, t, q int) {
	and := func(m, n, d int) { c.I("VAND V%d.B16, V%d.B16, V%d.B16", m, n, d) }
	c.I("VUSHR $16, V%d.S4, V%d.S4", u, t)
	and(c.one, t, t)
	c.I("VADD V%d.S4, V%d.S4, V%d.S4", c.half, u, r)
	c.I("VADD V%d.S4, V%d.S4, V%d.S4", t, r, r)
	and(c.high, r, r)
	and(c.exp, u, q)
	c.Cmeq0(q, q) // subnormal or zero
	and(c.sign, u, t)
	c.I("VBIT V%d.B16, V%d.B16, V%d.B16", q, t, r)
	c.Bic(q, u, c.sign)
	c.Cmhi(q, q, c.exp) // NaN
	c.I("VORR V%d.B16, V%d.B16, V%d.B16", c.quiet, u, t)
	and(c.high, t, t)
	c.I("VBIT V%d.B16, V%d.B16, V%d.B16", q, t, r)
}

func round(f *asm.File) {
	f.Func("roundNEON",
		"roundNEON rounds n f32, a multiple of 8, to bf16, each kept as an f32.", "(dst *byte, src *float32, n int)", 24)
	f.I("MOVD dst+0(FP), R0")
	f.I("MOVD src+8(FP), R1")
	f.I("MOVD n+16(FP), R2")
	c := newRounding(f)
	f.Label("loop")
	f.I("FLDPQ.P 32(R1), (F0, F1)")
	c.round(2, 0, 4, 5)
	c.round(3, 1, 6, 7)
	f.I("FSTPQ.P (F2, F3), 32(R0)")
	f.I("SUBS $8, R2")
	f.I("BNE loop")
	f.I("RET")
}

// quantize is quantizeRow, for blocks of so many bytes, so many in a group. The largest magnitude
// is found on the bits as integers, which puts infinities and NaNs on top.
func quantize(f *asm.File, name string, size, blocks int) {
	f.Func(name, name+" quantises n f32, a multiple of 32, to groups of int8.", "(dst *byte, src *float32, n int)", 24)
	const (
		dst, src, n, left  = "R0", "R1", "R2", "R3"
		count, from        = "R4", "R5"
		top, scale, bound  = "R6", "R7", "R8"
		first, second      = "R9", "R10"
		abs, keep, inv, by = 24, 25, 26, 27 // by: 127
		ones               = 28
	)
	f.I("MOVD dst+0(FP), %s", dst)
	f.I("MOVD src+8(FP), %s", src)
	f.I("MOVD n+16(FP), %s", n)
	f.I("MOVD $0x7fffffff, %s", bound)
	f.I("VDUP %s, V%d.S4", bound, abs)
	f.I("MOVD $0x42fe0000, %s", bound)
	f.I("VDUP %s, V%d.S4", bound, by)
	f.I("VMOVI $1, V%d.B16", ones)
	fit := fitting{f, 29, 30}
	if blocks == 1 {
		fit.constants(bound)
	}

	f.Label("group")
	f.I("MOVD $%d, %s", blocks, left)
	f.I("MOVD %s, %s", left, count)

	// The top of the group.
	for i := range 4 {
		f.Zero(8 + i)
	}
	f.I("MOVD %s, %s", src, from)
	f.Label("top")
	for i := range 4 {
		f.I("FLDPQ.P 32(%s), (F%d, F%d)", from, i*2, i*2+1)
	}
	for i := range 8 {
		f.I("VAND V%d.B16, V%d.B16, V%d.B16", abs, i, i)
		f.I("VUMAX V%d.S4, V%d.S4, V%d.S4", i, 8+i%4, 8+i%4)
	}
	f.I("SUBS $1, %s", count)
	f.I("BNE top")
	f.I("VUMAX V9.S4, V8.S4, V8.S4")
	f.I("VUMAX V11.S4, V10.S4, V10.S4")
	f.I("VUMAX V10.S4, V8.S4, V8.S4")
	f.Umaxv(8, 8)
	f.I("FMOVS F8, %s", top)

	// The scale, 127/top in all of inv; keep clears what cannot be quantised.
	f.I("FDIVS F%d, F8, F9", by)
	f.I("FMOVS F9, %s", scale)
	f.I("FDIVS F8, F%d, F9", by)
	f.I("VDUP V9.S[0], V%d.S4", inv)
	f.I("VMOVI $255, V%d.B16", keep)
	f.I("MOVD $0x7f800000, %s", bound)
	f.I("CMPW %s, %s", bound, top)
	f.I("BHS lost")
	f.I("MOVD $0x%08x, %s", (127-100)<<23, bound)
	f.I("CMPW %s, %s", bound, top)
	f.I("BHS block")
	f.I("MOVD ZR, %s", scale)
	f.I("B clear")
	f.Label("lost")
	f.I("MOVD $0x7fc00000, %s", scale)
	f.Label("clear")
	f.Zero(keep)
	f.Zero(inv)

	f.Label("block")
	for i := range 4 {
		f.I("FLDPQ.P 32(%s), (F%d, F%d)", src, i*2, i*2+1)
	}
	for i := range 8 {
		f.I("VAND V%d.B16, V%d.B16, V%d.B16", keep, i, i)
		f.Fmul(i, i, inv)
	}
	if blocks == 1 {
		f.I("FMOVS F%d, %s", keep, first)
		f.I("CBZW %s, fitted", first)
		fit.scale(scale)
		f.Label("fitted")
	}
	for i := range 8 {
		f.IntFromFloat(i, i)
	}
	for i := 0; i < 8; i += 2 {
		f.I("VUZP1 V%d.H8, V%d.H8, V%d.H8", i+1, i, i)
	}
	for i := 0; i < 8; i += 4 {
		f.I("VUZP1 V%d.B16, V%d.B16, V%d.B16", i+2, i, i)
	}
	f.I("FSTPQ (F0, F4), (%s)", dst)
	f.Zero(8)
	f.Sdot(8, 0, ones)
	if blocks == 1 {
		f.Sdot(8, 4, ones)
		f.Addv(8, 8)
		f.I("FMOVS F8, %s", first)
		f.I("NEG %s, %s", first, first)
		f.I("SCVTFWS %s, F8", first)
		f.I("FMOVS %s, F9", scale)
		f.I("FMULS F9, F8, F8")
		f.I("FMOVS F8, %d(%s)", q8Sum, dst)
		f.I("LSL $7, %s, %s", first, first)
		f.I("MOVW %s, 32(%s)", first, dst)
		f.I("MOVW %s, %d(%s)", scale, q8Scale, dst)
	} else { // of the halves, and all
		f.Zero(9)
		f.Sdot(9, 4, ones)
		f.Addv(8, 8)
		f.Addv(9, 9)
		f.I("FMOVS F8, %s", first)
		f.I("FMOVS F9, %s", second)
		f.I("NEG %s<<5, %s", first, top)
		f.I("MOVW %s, %d(%s)", top, kHalves, dst)
		f.I("NEG %s<<5, %s", second, top)
		f.I("MOVW %s, %d(%s)", top, kHalves+4, dst)
		f.I("ADD %s, %s, %s", first, second, first)
		f.I("NEG %s, %s", first, first)
		f.I("SCVTFWS %s, F8", first)
		f.I("FMOVS F8, %d(%s)", kSum, dst)
	}
	f.I("ADD $%d, %s", size, dst)
	f.I("SUBS $1, %s", left)
	f.I("BNE block")
	if blocks > 1 {
		f.I("MOVW %s, (%s)", scale, dst)
		f.I("ADD $4, %s", dst)
	}
	f.I("SUBS $%d, %s", blocks*32, n)
	f.I("BNE group")
	f.I("RET")
}

// fitting is what fitScale of package gemm needs: registers of what blocks are multiplied by before they are rounded.
type fitting struct {
	*asm.File
	one, narrower int
}

func (f fitting) constants(tmp string) {
	for i, v := range []float32{1, float32(126) / 127} {
		f.I("MOVD $0x%08x, %s", math.Float32bits(v), tmp)
		f.I("VDUP %s, V%d.S4", tmp, f.one+i)
	}
}

// scale fits the scale of a block in V0 to V7, in units of it, and multiplies the block by what
// integers are then rounded from.
func (f fitting) scale(scale string) {
	const lanes, t, sums = 8, 16, 17
	for c := range 2 { // Σvq and Σq² of steps of / 127, then of / 126: sixteen lanes each
		for i := range 8 {
			f.Zero(lanes + i)
		}
		for i := range 8 {
			if c == 0 {
				f.Frintn(t, i)
			} else {
				f.Fmul(t, i, f.narrower)
				f.Frintn(t, t)
			}
			f.Fmla(lanes+i%4, i, t)
			f.Fmla(lanes+4+i%4, t, t)
		}
		for i := 0; i < 8; i += 4 {
			f.Fadd(lanes+i, lanes+i, lanes+i+2)
			f.Fadd(lanes+i+1, lanes+i+1, lanes+i+3)
			f.Faddp(lanes+i, lanes+i, lanes+i+1)
		}
		f.Faddp(sums+c, lanes, lanes+4)
	}
	f.Faddp(sums, sums, sums+1) // the four sums
	const swapped, cross, mask = sums + 1, sums + 2, sums + 3
	f.I("VEXT $8, V%d.B16, V%d.B16, V%d.B16", sums, sums, swapped)
	f.I("VREV64 V%d.S4, V%d.S4", swapped, cross)
	f.Fmul(t, sums, sums)
	f.Fmul(cross, t, cross) // (Σvq)² of one times Σq² of the other, in elements 0 and 2
	f.I("VEXT $8, V%d.B16, V%d.B16, V%d.B16", cross, cross, t)
	f.Fcmgt(mask, t, cross)
	f.I("VDUP V%d.S[0], V%d.S4", mask, mask) // whether / 126 fits better
	f.I("VBIT V%d.B16, V%d.B16, V%d.B16", mask, swapped, sums)
	f.I("VDUP V%d.S[1], V%d.S4", sums, t)
	f.I("FDIVS F%d, F%d, F%d", t, sums, t)
	f.I("FMOVS %s, F%d", scale, cross)
	f.I("FMULS F%d, F%d, F%d", t, cross, t)
	f.I("FMOVS F%d, %s", t, scale)
	f.I("VORR V%d.B16, V%d.B16, V%d.B16", f.one, f.one, t)
	f.I("VBIT V%d.B16, V%d.B16, V%d.B16", mask, f.narrower, t)
	for i := range 8 {
		f.Fmul(i, i, t)
	}
}
