//go:build !purego

package gemm

import (
	"math"
	"sync"
	"unsafe"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/num"
)

// The offsets that the assembly relies on.
var _ = [1]struct{}{}[unsafe.Offsetof(tile{}.scale)-96]
var _ = [1]struct{}{}[unsafe.Offsetof(tile{}.blocks)-104]
var _ = [1]struct{}{}[unsafe.Offsetof(fewTile{}.rows)-120]

// The kernels for unpacked types with blocks of 32, each of which has several unpacking functions.
var (
	wideQ8AVX512  = engine{lanes: 32, rows: 5, turn: 1, dense: 18, sparse: 3, cost: 20}
	wideMinAVX512 = engine{lanes: 32, rows: 5, turn: 1, dense: 20, sparse: 3, cost: 20}
)

var engines = [...]engine{
	idF32AVX512:      {lanes: 32, rows: 12, turn: 4, dense: 8, sparse: 2, cost: 2},
	idF16AVX512:      {lanes: 32, rows: 12, turn: 4, dense: 5, sparse: 2, cost: 2},
	idBF16AVX512:     {lanes: 32, rows: 12, turn: 4, dense: 8, sparse: 2, cost: 4},
	idBF16AVX512BF16: {lanes: 32, rows: 12, turn: 4, dense: 8, sparse: 2, cost: 2},
	idQ8AVX512:       {lanes: 32, rows: 5, tall: 8, turn: 1, dense: 17, sparse: 3, cost: 20},
	idQ40AVX512: {lanes: 32, rows: 8, kept: 5, turn: 1, dense: 9, sparse: 3, cost: 22,
		wide: idWide40AVX512, many: 33},
	idQ41AVX512: {lanes: 32, rows: 8, kept: 5, turn: 1, dense: 10, sparse: 3, cost: 22,
		wide: idWide41AVX512, many: 33},
	idQ50AVX512: {lanes: 32, rows: 8, kept: 5, turn: 1, dense: 11, sparse: 3, cost: 22,
		wide: idWide50AVX512, many: 33},
	idQ51AVX512: {lanes: 32, rows: 8, kept: 5, turn: 1, dense: 12, sparse: 3, cost: 22,
		wide: idWide51AVX512, many: 33},
	idIQ4NLAVX512: {lanes: 32, rows: 8, kept: 5, turn: 1, dense: 9, sparse: 3, cost: 22,
		wide: idWideIQ4NLAVX512, many: 33},
	idMXFP4AVX512: {lanes: 32, rows: 8, kept: 5, turn: 1, dense: 9, sparse: 3, cost: 22,
		wide: idWideMXFP4AVX512, many: 33},
	idWide40AVX512: wideQ8AVX512, idWide50AVX512: wideQ8AVX512, idWideIQ4NLAVX512: wideQ8AVX512,
	idWideMXFP4AVX512: wideQ8AVX512, idWide41AVX512: wideMinAVX512, idWide51AVX512: wideMinAVX512,
	idQ4KAVX512:    {lanes: 32, rows: 6, kept: 4, turn: 1, dense: 80, sparse: 16, cost: 168},
	idQ5KAVX512:    {lanes: 32, rows: 6, kept: 4, turn: 1, dense: 96, sparse: 16, cost: 168, wide: idWide5KAVX512, many: 33},
	idQ6KAVX512:    {lanes: 32, rows: 6, kept: 4, turn: 1, dense: 112, sparse: 16, cost: 168, wide: idWide6KAVX512, many: 33},
	idQ2KAVX512:    {lanes: 32, rows: 6, kept: 4, turn: 1, dense: 48, sparse: 16, cost: 200},
	idQ3KAVX512:    {lanes: 32, rows: 6, kept: 4, turn: 1, dense: 64, sparse: 16, cost: 168, wide: idWide3KAVX512, many: 33},
	idWide3KAVX512: {lanes: 32, rows: 6, kept: 4, turn: 1, dense: 112, sparse: 16, cost: 168},
	idWide5KAVX512: {lanes: 32, rows: 6, kept: 4, turn: 1, dense: 96, sparse: 16, cost: 168},
	idWide6KAVX512: {lanes: 32, rows: 6, kept: 4, turn: 1, dense: 112, sparse: 16, cost: 168},
	idF32AVX2:      {lanes: 16, rows: 6, turn: 2, dense: 4, sparse: 2, cost: 2},
	idF16AVX2:      {lanes: 16, rows: 6, turn: 2, dense: 4, sparse: 2, cost: 2},
	idBF16AVX2:     {lanes: 16, rows: 6, turn: 2, dense: 4, sparse: 2, cost: 4},
	idQ8AVX2:       {lanes: 8, rows: 6, turn: 1, dense: 4, sparse: 4, cost: 64},
	idQ40AVX2:      {lanes: 16, rows: 6, turn: 1, dense: 5, sparse: 5, cost: 40},
	idQ41AVX2:      {lanes: 16, rows: 6, turn: 1, dense: 5, sparse: 5, cost: 40},
	idQ50AVX2:      {lanes: 16, rows: 3, turn: 1, dense: 6, sparse: 6, cost: 40},
	idQ51AVX2:      {lanes: 16, rows: 3, turn: 1, dense: 6, sparse: 6, cost: 40},
	idIQ4NLAVX2:    {lanes: 8, rows: 6, turn: 1, dense: 2, sparse: 2, cost: 64},
	idMXFP4AVX2:    {lanes: 16, rows: 3, turn: 1, dense: 5, sparse: 5, cost: 40},
	idQ4KAVX2:      {lanes: 16, rows: 6, turn: 1, dense: 40, sparse: 40, cost: 320, wide: idWide4KAVX2, many: 13},
	idQ5KAVX2:      {lanes: 16, rows: 3, turn: 1, dense: 48, sparse: 48, cost: 320, wide: idWide5KAVX2, many: 4},
	idQ6KAVX2:      {lanes: 16, rows: 3, turn: 1, dense: 56, sparse: 56, cost: 320, wide: idWide6KAVX2, many: 4},
	idQ2KAVX2:      {lanes: 16, rows: 3, turn: 1, dense: 24, sparse: 24, cost: 360},
	idQ3KAVX2:      {lanes: 16, rows: 3, turn: 1, dense: 32, sparse: 32, cost: 320, wide: idWide3KAVX2, many: 4},
	idWide3KAVX2:   {lanes: 16, rows: 3, turn: 1, dense: 56, sparse: 56, cost: 320},
	idWide4KAVX2:   {lanes: 16, rows: 6, turn: 1, dense: 40, sparse: 40, cost: 320},
	idWide5KAVX2:   {lanes: 16, rows: 3, turn: 1, dense: 48, sparse: 48, cost: 320},
	idWide6KAVX2:   {lanes: 16, rows: 3, turn: 1, dense: 56, sparse: 56, cost: 320},
	idWide7KAVX2:   {lanes: 16, rows: 3, turn: 1, dense: 56, sparse: 56, cost: 320},

	idQ8AVXVNNI:     {lanes: 16, rows: 3, turn: 1, dense: 8, sparse: 8, cost: 32},
	idQ40AVXVNNI:    {lanes: 16, rows: 3, turn: 1, dense: 5, sparse: 5, cost: 32},
	idQ41AVXVNNI:    {lanes: 16, rows: 3, turn: 1, dense: 5, sparse: 5, cost: 32},
	idQ50AVXVNNI:    {lanes: 16, rows: 3, turn: 1, dense: 6, sparse: 6, cost: 32, wide: idQ8AVXVNNI, many: 8},
	idQ51AVXVNNI:    {lanes: 16, rows: 3, turn: 1, dense: 6, sparse: 6, cost: 32},
	idIQ4NLAVXVNNI:  {lanes: 16, rows: 3, turn: 1, dense: 5, sparse: 5, cost: 32},
	idMXFP4AVXVNNI:  {lanes: 16, rows: 3, turn: 1, dense: 5, sparse: 5, cost: 32},
	idQ4KAVXVNNI:    {lanes: 16, rows: 3, turn: 1, dense: 40, sparse: 40, cost: 160, wide: idWide4KAVXVNNI, many: 8},
	idQ5KAVXVNNI:    {lanes: 16, rows: 3, turn: 1, dense: 48, sparse: 48, cost: 160, wide: idWide5KAVXVNNI, many: 4},
	idQ6KAVXVNNI:    {lanes: 16, rows: 3, turn: 1, dense: 56, sparse: 56, cost: 160, wide: idWide6KAVXVNNI, many: 4},
	idQ2KAVXVNNI:    {lanes: 16, rows: 3, turn: 1, dense: 24, sparse: 24, cost: 200},
	idQ3KAVXVNNI:    {lanes: 16, rows: 3, turn: 1, dense: 32, sparse: 32, cost: 160, wide: idWide3KAVXVNNI, many: 4},
	idWide3KAVXVNNI: {lanes: 16, rows: 3, turn: 1, dense: 56, sparse: 56, cost: 160},
	idWide4KAVXVNNI: {lanes: 16, rows: 3, turn: 1, dense: 40, sparse: 40, cost: 160},
	idWide5KAVXVNNI: {lanes: 16, rows: 3, turn: 1, dense: 48, sparse: 48, cost: 160},
	idWide6KAVXVNNI: {lanes: 16, rows: 3, turn: 1, dense: 56, sparse: 56, cost: 160},

	idPackedF32AVX512:      {lanes: 32, rows: 8},
	idPackedBF16AVX512BF16: {lanes: 32, rows: 8},
	idPackedF32AVX2:        {lanes: 16, rows: 6},
}

// farAhead: see streamAhead. Zen 5 has AVX-VNNI, Zen 4 does not; other processors with it were not measured.
var farAhead = cpu.Has(cpu.AVXVNNI)

// engineFor picks the assembly for weights of type t at a level; pairs reports whether bf16
// activations are pairs of bf16.
func engineFor(t Type, l cpu.Level, pairs bool) (e engine, ok bool) {
	if t.coded() {
		return codedEngine(l)
	}
	id := 0
	switch {
	case l >= cpu.AVX512:
		id = [...]int{F32: idF32AVX512, F16: idF16AVX512, BF16: idBF16AVX512, Q8_0: idQ8AVX512,
			Q4_0: idQ40AVX512, Q4_1: idQ41AVX512,
			Q5_0: idQ50AVX512, Q5_1: idQ51AVX512, IQ4_NL: idIQ4NLAVX512, MXFP4: idMXFP4AVX512, Q4_K: idQ4KAVX512,
			Q5_K: idQ5KAVX512, Q6_K: idQ6KAVX512, Q2_K: idQ2KAVX512, Q3_K: idQ3KAVX512}[t]
	case l >= cpu.AVXVNNI && t.integer():
		id = [...]int{Q8_0: idQ8AVXVNNI, Q4_0: idQ40AVXVNNI, Q4_1: idQ41AVXVNNI,
			Q5_0: idQ50AVXVNNI, Q5_1: idQ51AVXVNNI, IQ4_NL: idIQ4NLAVXVNNI, MXFP4: idMXFP4AVXVNNI, Q4_K: idQ4KAVXVNNI,
			Q5_K: idQ5KAVXVNNI, Q6_K: idQ6KAVXVNNI, Q2_K: idQ2KAVXVNNI, Q3_K: idQ3KAVXVNNI}[t]
	case l >= cpu.AVX2:
		id = [...]int{F32: idF32AVX2, F16: idF16AVX2, BF16: idBF16AVX2, Q8_0: idQ8AVX2, Q4_0: idQ40AVX2, Q4_1: idQ41AVX2,
			Q5_0: idQ50AVX2, Q5_1: idQ51AVX2, IQ4_NL: idIQ4NLAVX2, MXFP4: idMXFP4AVX2, Q4_K: idQ4KAVX2,
			Q5_K: idQ5KAVX2, Q6_K: idQ6KAVX2, Q2_K: idQ2KAVX2, Q3_K: idQ3KAVX2}[t]
	default:
		return engine{}, false
	}
	if t == BF16 && pairs {
		id = idBF16AVX512BF16
	}
	return engineOf(id), true
}

// codedEngine is engineFor for the types of package codebook, which are unpacked for any number of rows.
func codedEngine(l cpu.Level) (e engine, ok bool) {
	switch {
	case l >= cpu.AVX512:
		e = engineOf(idWide6KAVX512)
	case l >= cpu.AVXVNNI:
		e = engineOf(idWide6KAVXVNNI)
	case l >= cpu.AVX2:
		e = engineOf(idWide7KAVX2)
	default:
		return engine{}, false
	}
	e.wide = e.id
	return e, true
}

// Unpacked, a block of 32 of a K type is [2][Panel]f32, the products of its scales and minimums
// (for Q6_K, the halves' scales) with d and dmin, and its elements, [8][Panel][4]u8. A block of a
// type with blocks of 32 is [Panel]f32 of scales, [Panel]f32 of minimums if there are any, and
// elements of the same form, which without minimums have 128 added; AVX-VNNI stores Q5_0 like Q8_0.
const wideStep = super / block * (2*Panel*4 + Panel*block)

// expandAsm unpacks a step of a panel, or returns false if the level or the type has no function for it.
func expandAsm(t Type, dst *[super / block * wideWords]uint32, src unsafe.Pointer) bool {
	if cpu.Active() < cpu.AVX2 {
		return false
	}
	entries, signs := t.code().Tables()
	d, s := (*byte)(unsafe.Pointer(dst)), (*byte)(src)
	e, m := (*byte)(entries), (*byte)(signs)
	switch t {
	case IQ1_S:
		expandIQ1SAVX2(d, s, e, m)
	case IQ1_M:
		expandIQ1MAVX2(d, s, e, m)
	case IQ2_XXS:
		expandIQ2XXSAVX2(d, s, e, m)
	case IQ2_XS:
		expandIQ2XSAVX2(d, s, e, m)
	case IQ2_S:
		expandIQ2SAVX2(d, s, e, m)
	case IQ3_XXS:
		expandIQ3XXSAVX2(d, s, e, m)
	case IQ3_S:
		expandIQ3SAVX2(d, s, e, m)
	case TQ2_0:
		expandTQ2AVX2(d, s, e, m)
	case Q1_0:
		expandQ1AVX2(d, s, e, m)
	case Q2_0:
		expandQ2AVX2(d, s, e, m)
	default:
		return false
	}
	return true
}

// roundRow rounds as much of v as it can to bf16 kept as f32, and returns the number of elements.
func roundRow(dst []byte, v []float32, l cpu.Level) int {
	n := len(v) &^ 7
	if l < cpu.AVX2 || n == 0 {
		return 0
	}
	roundAVX2(&dst[:n*4][0], &v[0], n)
	return n
}

// pairRow rounds as much of v as it can to bf16, and returns the number of elements.
func pairRow(dst []byte, v []float32) int {
	n := len(v) &^ 15
	if n == 0 {
		return 0
	}
	pairsAVX512BF16(&dst[:n*2][0], &v[0], n)
	return n
}

// quantizeRowAsm is quantizeRow, or returns false if the level has no function for it.
func quantizeRowAsm(dst []byte, v []float32, t Type, l cpu.Level) bool {
	if l < cpu.AVX2 || len(v) == 0 {
		return false
	}
	dst = dst[:quantizedBytes(t, len(v))]
	if t != Q8_0 {
		quantizeKAVX2(&dst[0], &v[0], len(v))
		return true
	}
	const four = 4 * block
	if len(v) < four {
		var whole [four]float32
		var quantized [4 * xBlock]byte
		copy(whole[:], v)
		quantizeAVX2(&quantized[0], &whole[0], four)
		copy(dst, quantized[:])
		return true
	}
	n := len(v) / four * four
	quantizeAVX2(&dst[0], &v[0], n)
	if at := len(v) - four; n < len(v) { // the last four blocks, some of them for a second time
		quantizeAVX2(&dst[at/block*xBlock], &v[at], four)
	}
	return true
}

// readAsm reads as much of p as it can, and returns the number of bytes.
func readAsm(p []byte, l cpu.Level) (sum uint64, n int) {
	n = len(p) &^ 511
	switch {
	case l < cpu.AVX2 || n == 0:
		return 0, 0
	case l >= cpu.AVX512:
		return readAVX512(&p[0], n), n
	}
	return readAVX2(&p[0], n), n
}

// peakAsm runs the multiply instruction and returns the operations per iteration, or 0 if the level has none.
func peakAsm(t Type, l cpu.Level, iters int) int {
	const chains = 12
	switch {
	case l < cpu.AVX2:
		return 0
	case t == BF16 && pairsAt(l):
		peakBF16AVX512BF16(iters)
		return chains * 16 * 2 * 2
	case t.integer() && l >= cpu.AVX512:
		peakQ8AVX512(iters)
		return chains * 16 * 4 * 2
	case t.integer() && l >= cpu.AVXVNNI:
		peakQ8AVXVNNI(iters)
		return chains * 8 * 4 * 2
	case t.integer():
		peakQ8AVX2(iters)
		return chains * 8 * 4 * 2
	case l >= cpu.AVX512:
		peakFMAAVX512(iters)
		return chains * 16 * 2
	}
	peakFMAAVX2(iters)
	return chains * 8 * 2
}

// mulFew multiplies rows of pairs by four panels.
func mulFew(t *fewTile) { mulFewBF16AVX512BF16(t) }

// pairsAt reports whether kernels of level l read bf16 activations as pairs.
func pairsAt(l cpu.Level) bool { return l >= cpu.AVX512BF16 && nativePairs() }

// nativePairs reports whether VDPBF16PS may be used. Its definition does not state clearly in which
// order the two additions happen, or whether the first is rounded. On the processors measured it is
// two FMAs with subnormals flushed, odd element first; a processor that differed would break the
// law that every level gives the same bits, so each process tests its own, in well under a
// millisecond.
var nativePairs = sync.OnceValue(func() bool {
	return cpu.Best() >= cpu.AVX512BF16 && checkPairs()
})

// checkPairs compares the native product with that of the FMA kernel, bit for bit, on values chosen
// to produce ties, cancellation and both edges of the subnormals.
func checkPairs() bool {
	const in, n = 128, 8
	m, err := New(BF16, Panel, in)
	if err != nil {
		return false
	}
	state := uint64(0x9e3779b97f4a7c15)
	// Three quarters of the exponents are near 2^-63, where products are almost subnormal, or near
	// 1, and never so large that a sum overflows.
	next := func() uint16 {
		state = state*6364136223846793005 + 1442695040888963407
		u := uint16(state >> 40)
		exp := [4]uint16{60 + u>>9&7, 120 + u>>9&15, 124, 60 + u>>4&127}[state>>62]
		if u&0xf00 == 0 {
			exp = 0
		}
		return u&0x807f | exp<<7
	}
	for i := 0; i < len(m.data); i += 2 {
		w := next()
		m.data[i], m.data[i+1] = byte(w), byte(w>>8)
	}
	row := make([]float32, in)
	var x [2]Input
	x[0].reset(BF16, n, in, cpu.AVX512, false)
	x[1].reset(BF16, n, in, cpu.AVX512BF16, true)
	for i := range n {
		for k := range row {
			row[k] = num.BF16(next()) * (1 + 0x1p-9*float32(k%3)) // between two bf16, and on ties
		}
		x[0].SetRow(i, row)
		x[1].SetRow(i, row)
	}
	var dst [2][n * Panel]float32
	for i := range x {
		m.Mul(dst[i][:], Panel, &x[i], 0, 1)
	}
	for i := range dst[0] {
		if math.Float32bits(dst[0][i]) != math.Float32bits(dst[1][i]) {
			return false
		}
	}
	return true
}
