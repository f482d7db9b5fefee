//go:build !purego

package gemm

import (
	"unsafe"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// The offsets that the assembly relies on.
var _ = [1]struct{}{}[unsafe.Offsetof(tile{}.scale)-96]

// Costs count the vector instructions of the loops, two per cycle; some processors do four. All
// prefetches are always done: one for each 128 bytes of a call's share of the weights.
var engines = [...]engine{
	idF32Few:  {lanes: 32, rows: 3, turn: 4, dense: 4, sparse: 4, cost: 4},
	idF32:     {lanes: 16, rows: 6, turn: 4, dense: 2, sparse: 2, cost: 4, few: 3, fewer: idF32Few},
	idF16Few:  {lanes: 32, rows: 3, turn: 4, dense: 2, sparse: 2, cost: 4},
	idF16:     {lanes: 16, rows: 6, turn: 4, dense: 1, sparse: 1, cost: 4, few: 3, fewer: idF16Few},
	idBF16Few: {lanes: 32, rows: 3, turn: 2, dense: 2, sparse: 2, cost: 8},
	idBF16:    {lanes: 16, rows: 5, turn: 2, dense: 1, sparse: 1, cost: 8, few: 3, fewer: idBF16Few},

	idQ8One: {lanes: 32, rows: 1, turn: 1, dense: 8, sparse: 8, cost: 80},
	idQ8Few: {lanes: 16, rows: 3, turn: 1, dense: 4, sparse: 4, cost: 56, few: 1, fewer: idQ8One},
	idQ8:    {lanes: 8, rows: 6, turn: 1, dense: 2, sparse: 2, cost: 50, wide: idWideQ8, many: 12, few: 3, fewer: idQ8Few},

	idQ8FewI8MM: {lanes: 16, rows: 2, turn: 1, dense: 4, sparse: 4, cost: 50, few: 1, fewer: idQ8One},
	idQ8I8MM: {lanes: 8, rows: 6, even: true, turn: 1, dense: 2, sparse: 2, cost: 42, wide: idWideQ8I8MM, many: 12,
		few: 2, fewer: idQ8FewI8MM},

	idQ40One: {lanes: 32, rows: 1, turn: 1, dense: 8, sparse: 8, cost: 80},
	idQ40Few: {lanes: 16, rows: 3, turn: 1, dense: 4, sparse: 4, cost: 56, few: 1, fewer: idQ40One},
	idQ40:    {lanes: 8, rows: 5, turn: 1, dense: 2, sparse: 2, cost: 50, wide: idWide40, many: 12, few: 3, fewer: idQ40Few},

	idQ41One: {lanes: 32, rows: 1, turn: 1, dense: 8, sparse: 8, cost: 88},
	idQ41Few: {lanes: 16, rows: 3, turn: 1, dense: 4, sparse: 4, cost: 60, few: 1, fewer: idQ41One},
	idQ41:    {lanes: 8, rows: 5, turn: 1, dense: 2, sparse: 2, cost: 54, wide: idWide41, many: 12, few: 3, fewer: idQ41Few},

	idQ50One: {lanes: 32, rows: 1, turn: 1, dense: 8, sparse: 8, cost: 120},
	idQ50Few: {lanes: 16, rows: 3, turn: 1, dense: 4, sparse: 4, cost: 72, few: 1, fewer: idQ50One},
	idQ50:    {lanes: 8, rows: 5, turn: 1, dense: 2, sparse: 2, cost: 64, wide: idWide50, many: 6, few: 3, fewer: idQ50Few},

	idQ51One: {lanes: 32, rows: 1, turn: 1, dense: 8, sparse: 8, cost: 128},
	idQ51Few: {lanes: 16, rows: 3, turn: 1, dense: 4, sparse: 4, cost: 76, few: 1, fewer: idQ51One},
	idQ51:    {lanes: 8, rows: 5, turn: 1, dense: 2, sparse: 2, cost: 68, wide: idWide51, many: 6, few: 3, fewer: idQ51Few},

	idIQ4NLOne: {lanes: 32, rows: 1, turn: 1, dense: 8, sparse: 8, cost: 100},
	idIQ4NLFew: {lanes: 16, rows: 3, turn: 1, dense: 4, sparse: 4, cost: 64, few: 1, fewer: idIQ4NLOne},
	idIQ4NL: {lanes: 8, rows: 5, turn: 1, dense: 2, sparse: 2, cost: 54, wide: idWideIQ4NL, many: 8,
		few: 3, fewer: idIQ4NLFew},

	idMXFP4One: {lanes: 32, rows: 1, turn: 1, dense: 8, sparse: 8, cost: 100},
	idMXFP4Few: {lanes: 16, rows: 3, turn: 1, dense: 4, sparse: 4, cost: 64, few: 1, fewer: idMXFP4One},
	idMXFP4: {lanes: 8, rows: 5, turn: 1, dense: 2, sparse: 2, cost: 54, wide: idWideMXFP4, many: 8,
		few: 3, fewer: idMXFP4Few},

	idQ4KOne: {lanes: 32, rows: 1, turn: 1, dense: 40, sparse: 40, cost: 930},
	idQ4KFew: {lanes: 16, rows: 3, turn: 1, dense: 16, sparse: 16, cost: 570, few: 1, fewer: idQ4KOne},
	idQ4K:    {lanes: 8, rows: 5, turn: 1, dense: 8, sparse: 8, cost: 500, wide: idWide4K, many: 6, few: 3, fewer: idQ4KFew},

	idQ5KOne: {lanes: 32, rows: 1, turn: 1, dense: 48, sparse: 48, cost: 1400},
	idQ5KFew: {lanes: 16, rows: 3, turn: 1, dense: 24, sparse: 24, cost: 720, few: 1, fewer: idQ5KOne},
	idQ5K:    {lanes: 8, rows: 5, turn: 1, dense: 8, sparse: 8, cost: 590, wide: idWide5K, many: 6, few: 3, fewer: idQ5KFew},

	idQ6KOne: {lanes: 32, rows: 1, turn: 1, dense: 56, sparse: 56, cost: 1440},
	idQ6KFew: {lanes: 16, rows: 3, turn: 1, dense: 24, sparse: 24, cost: 780, few: 1, fewer: idQ6KOne},
	idQ6K:    {lanes: 8, rows: 5, turn: 1, dense: 8, sparse: 8, cost: 640, wide: idWide6K, many: 6, few: 3, fewer: idQ6KFew},

	idQ2KOne: {lanes: 32, rows: 1, turn: 1, dense: 24, sparse: 24, cost: 1200},
	idQ2KFew: {lanes: 16, rows: 3, turn: 1, dense: 8, sparse: 8, cost: 700, few: 1, fewer: idQ2KOne},
	idQ2K:    {lanes: 8, rows: 5, turn: 1, dense: 8, sparse: 8, cost: 600, few: 3, fewer: idQ2KFew},

	idQ3KOne: {lanes: 32, rows: 1, turn: 1, dense: 32, sparse: 32, cost: 1440},
	idQ3KFew: {lanes: 16, rows: 3, turn: 1, dense: 16, sparse: 16, cost: 780, few: 1, fewer: idQ3KOne},
	idQ3K:    {lanes: 8, rows: 5, turn: 1, dense: 8, sparse: 8, cost: 640, wide: idWide3K, many: 6, few: 3, fewer: idQ3KFew},

	idWideQ8:    {lanes: 8, rows: 6, turn: 1, dense: 2, sparse: 2, cost: 44},
	idWide40:    {lanes: 8, rows: 6, turn: 1, dense: 2, sparse: 2, cost: 44},
	idWide41:    {lanes: 8, rows: 6, turn: 1, dense: 2, sparse: 2, cost: 48},
	idWide50:    {lanes: 8, rows: 6, turn: 1, dense: 2, sparse: 2, cost: 44},
	idWide51:    {lanes: 8, rows: 6, turn: 1, dense: 2, sparse: 2, cost: 48},
	idWideIQ4NL: {lanes: 8, rows: 6, turn: 1, dense: 2, sparse: 2, cost: 44},
	idWideMXFP4: {lanes: 8, rows: 6, turn: 1, dense: 2, sparse: 2, cost: 44},
	idWide4K:    {lanes: 8, rows: 6, turn: 1, dense: 8, sparse: 8, cost: 380},
	idWide5K:    {lanes: 8, rows: 6, turn: 1, dense: 8, sparse: 8, cost: 380},
	idWide6K:    {lanes: 8, rows: 6, turn: 1, dense: 8, sparse: 8, cost: 450},

	idWide3K: {lanes: 8, rows: 6, turn: 1, dense: 8, sparse: 8, cost: 450},

	idWideQ8I8MM:    {lanes: 8, rows: 6, even: true, turn: 1, dense: 2, sparse: 2, cost: 36},
	idWide40I8MM:    {lanes: 8, rows: 6, even: true, turn: 1, dense: 2, sparse: 2, cost: 36},
	idWide41I8MM:    {lanes: 8, rows: 6, even: true, turn: 1, dense: 2, sparse: 2, cost: 40},
	idWide50I8MM:    {lanes: 8, rows: 6, even: true, turn: 1, dense: 2, sparse: 2, cost: 36},
	idWide51I8MM:    {lanes: 8, rows: 6, even: true, turn: 1, dense: 2, sparse: 2, cost: 40},
	idWideIQ4NLI8MM: {lanes: 8, rows: 6, even: true, turn: 1, dense: 2, sparse: 2, cost: 36},
	idWideMXFP4I8MM: {lanes: 8, rows: 6, even: true, turn: 1, dense: 2, sparse: 2, cost: 36},
	idWide4KI8MM:    {lanes: 8, rows: 6, even: true, turn: 1, dense: 8, sparse: 8, cost: 310},
	idWide5KI8MM:    {lanes: 8, rows: 6, even: true, turn: 1, dense: 8, sparse: 8, cost: 310},
	idWide6KI8MM:    {lanes: 8, rows: 6, even: true, turn: 1, dense: 8, sparse: 8, cost: 400},
	idWide3KI8MM:    {lanes: 8, rows: 6, even: true, turn: 1, dense: 8, sparse: 8, cost: 400},

	idPackedF32:  {lanes: 16, rows: 4},
	idPackedBF16: {lanes: 16, rows: 4},
}

const farAhead = false // see streamAhead

// engineFor picks the assembly for weights of type t at a level.
func engineFor(t Type, l cpu.Level, _ bool) (e engine, ok bool) {
	if l < cpu.NEON {
		return engine{}, false
	}
	if t.coded() { // those of package codebook: unpacked for any number of rows, for SDOT
		e = engineOf(idWide6K)
		e.wide = e.id
		return e, true
	}
	e = engineOf([...]int{F32: idF32, F16: idF16, BF16: idBF16, Q8_0: idQ8, Q4_0: idQ40, Q4_1: idQ41,
		Q5_0: idQ50, Q5_1: idQ51, IQ4_NL: idIQ4NL, MXFP4: idMXFP4, Q4_K: idQ4K, Q5_K: idQ5K, Q6_K: idQ6K,
		Q2_K: idQ2K, Q3_K: idQ3K}[t])
	switch {
	case l < cpu.I8MM || !t.integer():
	case t == Q8_0:
		e = engineOf(idQ8I8MM)
	case e.wide != 0:
		e.wide, e.many = e.wide+idWideQ8I8MM-idWideQ8, unpackedI8MM
	}
	return e, true
}

// unpackedI8MM is how many rows of types smaller than Q8_0 are multiplied by SMMLA, which needs two
// turns of the weights interleaved. By instruction count, this pays off if it is done once for two
// calls of the SDOT kernels.
const unpackedI8MM = 6

// packedEngine picks the assembly for products of two packed matrices; if there is none, the rows
// of one go through the kernels of Mul.
func packedEngine(t Type, l cpu.Level) (e engine, ok bool) {
	switch {
	case l < cpu.NEON:
		return engine{}, false
	case t == F32:
		return engineOf(idPackedF32), true
	}
	return engineOf(idPackedBF16), true
}

// run multiplies the blocks of a tile. It advances a copy: pointers stored through t would be
// considered to escape.
func (e *engine) run(t *tile) {
	for u := *t; ; u.blocks-- {
		e.call(&u)
		if u.blocks <= 1 {
			return
		}
		u.x = unsafe.Add(u.x, u.rows*u.xs)
		u.acc = unsafe.Add(u.acc, u.rows*Panel*4)
		u.out = unsafe.Add(u.out, u.rows*u.outs)
		u.pf += u.share
	}
}

// Unpacked, a block of 32 is [2][Panel]f32, the products of its scales and minimums (for Q6_K, the
// halves' scales) with d and dmin, and its elements, [8][Panel][4]u8; for the types with blocks of
// 32 elements it is [Panel]f32 of scales, [Panel]f32 of minimums if there are any, and
// [8][Panel][4]int8.
const wideStep = super / block * (2*Panel*4 + Panel*block)

// roundRow rounds as much of v as it can to bf16 kept as f32, and returns the number of elements.
func roundRow(dst []byte, v []float32, l cpu.Level) int {
	n := len(v) &^ 7
	if l < cpu.NEON || n == 0 {
		return 0
	}
	roundNEON(&dst[:n*4][0], &v[0], n)
	return n
}

// quantizeRowAsm is quantizeRow, or returns false if the level has no function for it.
func quantizeRowAsm(dst []byte, v []float32, t Type, l cpu.Level) bool {
	if l < cpu.NEON || len(v) == 0 {
		return false
	}
	to := &dst[:quantizedBytes(t, len(v))][0]
	if t == Q8_0 {
		quantizeNEON(to, &v[0], len(v))
	} else {
		quantizeKNEON(to, &v[0], len(v))
	}
	return true
}

// packPairs packs as much of a full panel of bf16 as it can, and returns the number of inputs.
func packPairs(dst []byte, src []float32, stride, in int) int {
	if cpu.Active() < cpu.NEON || in < 2 {
		return 0
	}
	packPairsNEON(&dst[:in/2*Panel*4][0], &src[:(in/2*2-1)*stride+Panel][0], stride*4, in/2)
	return in &^ 1
}

// pairsAt reports whether kernels of level l read bf16 activations as pairs.
func pairsAt(cpu.Level) bool { return false }

func mulFew(*fewTile) { panic("gemm: there are no pairs") }

func pairRow([]byte, []float32) int { return 0 }

// readAsm reads as much of p as it can, and returns the number of bytes.
func readAsm(p []byte, l cpu.Level) (sum uint64, n int) {
	n = len(p) &^ 511
	if l < cpu.NEON || n == 0 {
		return 0, 0
	}
	return readNEON(&p[0], n), n
}

// peakAsm runs the multiply instruction and returns the operations per iteration, or 0 if the level has none.
func peakAsm(t Type, l cpu.Level, iters int) int {
	const chains = 24
	switch {
	case l < cpu.NEON:
		return 0
	case t.integer() && l >= cpu.I8MM:
		peakQ8I8MM(iters)
		return chains * 4 * 8 * 2
	case t.integer():
		peakQ8NEON(iters)
		return chains * 4 * 4 * 2
	}
	peakFMANEON(iters)
	return chains * 4 * 2
}

// expandAsm has no assembly here: panels are unpacked in Go.
func expandAsm(Type, *[super / block * wideWords]uint32, unsafe.Pointer) bool { return false }
