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

const (
	idF32AVX512 = iota
	idF16AVX512
	idBF16AVX512
	idBF16AVX512BF16
	idQ8AVX512
	idQ40AVX512
	idQ41AVX512
	idQ50AVX512
	idQ51AVX512
	idIQ4NLAVX512
	idMXFP4AVX512
	idWide40AVX512
	idWide41AVX512
	idWide50AVX512
	idWide51AVX512
	idWideIQ4NLAVX512
	idWideMXFP4AVX512
	idQ4KAVX512
	idQ5KAVX512
	idQ6KAVX512
	idQ2KAVX512
	idQ3KAVX512
	idWide3KAVX512
	idWide5KAVX512
	idWide6KAVX512
	idF32AVX2
	idF16AVX2
	idBF16AVX2
	idQ8AVX2
	idQ40AVX2
	idQ41AVX2
	idQ50AVX2
	idQ51AVX2
	idIQ4NLAVX2
	idMXFP4AVX2
	idQ4KAVX2
	idQ5KAVX2
	idQ6KAVX2
	idQ2KAVX2
	idQ3KAVX2
	idWide3KAVX2
	idWide4KAVX2
	idWide5KAVX2
	idWide6KAVX2
	idWide7KAVX2
	idQ8AVXVNNI
	idQ40AVXVNNI
	idQ41AVXVNNI
	idQ50AVXVNNI
	idQ51AVXVNNI
	idIQ4NLAVXVNNI
	idMXFP4AVXVNNI
	idQ4KAVXVNNI
	idQ5KAVXVNNI
	idQ6KAVXVNNI
	idQ2KAVXVNNI
	idQ3KAVXVNNI
	idWide3KAVXVNNI
	idWide4KAVXVNNI
	idWide5KAVXVNNI
	idWide6KAVXVNNI
	idPackedF32AVX512
	idPackedBF16AVX512BF16
	idPackedF32AVX2
)

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

// run calls the assembly. It is a switch rather than a function value, because arguments of a
// function value escape and the tile would be allocated.
func (e *engine) run(t *tile) {
	switch e.id {
	case idF32AVX512:
		mulF32AVX512(t)
	case idF16AVX512:
		mulF16AVX512(t)
	case idBF16AVX512:
		mulBF16AVX512(t)
	case idBF16AVX512BF16:
		mulBF16AVX512BF16(t)
	case idQ8AVX512:
		mulQ8AVX512(t)
	case idQ40AVX512:
		mulQ40AVX512(t)
	case idQ41AVX512:
		mulQ41AVX512(t)
	case idQ50AVX512:
		mulQ50AVX512(t)
	case idQ51AVX512:
		mulQ51AVX512(t)
	case idIQ4NLAVX512:
		mulIQ4NLAVX512(t)
	case idMXFP4AVX512:
		mulMXFP4AVX512(t)
	case idWide40AVX512, idWide50AVX512, idWideIQ4NLAVX512, idWideMXFP4AVX512:
		mulWideQ8AVX512(t)
	case idWide41AVX512, idWide51AVX512:
		mulWideMinAVX512(t)
	case idWide5KAVX512:
		mulWide5KAVX512(t)
	case idWide3KAVX512, idWide6KAVX512:
		mulWide6KAVX512(t)
	case idF32AVX2:
		mulF32AVX2(t)
	case idF16AVX2:
		mulF16AVX2(t)
	case idBF16AVX2:
		mulBF16AVX2(t)
	case idQ8AVX2:
		mulQ8AVX2(t)
	case idQ40AVX2:
		mulQ40AVX2(t)
	case idQ41AVX2:
		mulQ41AVX2(t)
	case idQ50AVX2:
		mulQ50AVX2(t)
	case idQ51AVX2:
		mulQ51AVX2(t)
	case idIQ4NLAVX2:
		mulIQ4NLAVX2(t)
	case idMXFP4AVX2:
		mulMXFP4AVX2(t)
	case idQ4KAVX512:
		mulQ4KAVX512(t)
	case idQ5KAVX512:
		mulQ5KAVX512(t)
	case idQ6KAVX512:
		mulQ6KAVX512(t)
	case idQ2KAVX512:
		mulQ2KAVX512(t)
	case idQ3KAVX512:
		mulQ3KAVX512(t)
	case idQ4KAVX2:
		mulQ4KAVX2(t)
	case idQ5KAVX2:
		mulQ5KAVX2(t)
	case idQ6KAVX2:
		mulQ6KAVX2(t)
	case idQ2KAVX2:
		mulQ2KAVX2(t)
	case idQ3KAVX2:
		mulQ3KAVX2(t)
	case idWide4KAVX2:
		mulWide4KAVX2(t)
	case idWide5KAVX2:
		mulWide5KAVX2(t)
	case idWide3KAVX2, idWide6KAVX2:
		mulWide6KAVX2(t)
	case idWide7KAVX2:
		mulWide7KAVX2(t)
	case idQ8AVXVNNI:
		mulQ8AVXVNNI(t)
	case idQ40AVXVNNI:
		mulQ40AVXVNNI(t)
	case idQ41AVXVNNI:
		mulQ41AVXVNNI(t)
	case idQ50AVXVNNI:
		mulQ50AVXVNNI(t)
	case idQ51AVXVNNI:
		mulQ51AVXVNNI(t)
	case idIQ4NLAVXVNNI:
		mulIQ4NLAVXVNNI(t)
	case idMXFP4AVXVNNI:
		mulMXFP4AVXVNNI(t)
	case idQ4KAVXVNNI:
		mulQ4KAVXVNNI(t)
	case idQ5KAVXVNNI:
		mulQ5KAVXVNNI(t)
	case idQ6KAVXVNNI:
		mulQ6KAVXVNNI(t)
	case idQ2KAVXVNNI:
		mulQ2KAVXVNNI(t)
	case idQ3KAVXVNNI:
		mulQ3KAVXVNNI(t)
	case idWide4KAVXVNNI:
		mulWide4KAVXVNNI(t)
	case idWide5KAVXVNNI:
		mulWide5KAVXVNNI(t)
	case idWide3KAVXVNNI, idWide6KAVXVNNI:
		mulWide6KAVXVNNI(t)
	case idPackedF32AVX512:
		mulPackedF32AVX512(t)
	case idPackedBF16AVX512BF16:
		mulPackedBF16AVX512BF16(t)
	case idPackedF32AVX2:
		mulPackedF32AVX2(t)
	}
}

// Unpacked, a block of 32 of a K type is [2][Panel]f32, the products of its scales and minimums
// (for Q6_K, the halves' scales) with d and dmin, and its elements, [8][Panel][4]u8. A block of a
// type with blocks of 32 is [Panel]f32 of scales, [Panel]f32 of minimums if there are any, and
// elements of the same form, which without minimums have 128 added; AVX-VNNI stores Q5_0 like Q8_0.
const wideStep = super / block * (2*Panel*4 + Panel*block)

// unpack turns the given number of steps of a panel into bytes, for one of the kernels that multiply these.
func (e *engine) unpack(dst, src unsafe.Pointer, steps int) {
	d, s := (*byte)(dst), (*byte)(src)
	switch e.id {
	case idQ8AVXVNNI: // from Q5_0
		unpackQ50AVX2(d, s, steps)
	case idWide40AVX512:
		unpackQ40AVX512(d, s, steps)
	case idWide41AVX512:
		unpackQ41AVX512(d, s, steps)
	case idWide50AVX512:
		unpackQ50AVX512(d, s, steps)
	case idWide51AVX512:
		unpackQ51AVX512(d, s, steps)
	case idWideIQ4NLAVX512:
		unpackIQ4NLAVX512(d, s, steps)
	case idWideMXFP4AVX512:
		unpackMXFP4AVX512(d, s, steps)
	case idWide3KAVX512:
		unpackQ3KAVX512(d, s, steps)
	case idWide5KAVX512:
		unpackQ5KAVX512(d, s, steps)
	case idWide6KAVX512:
		unpackQ6KAVX512(d, s, steps)
	case idWide3KAVX2, idWide3KAVXVNNI:
		unpackQ3KAVX2(d, s, steps)
	case idWide4KAVX2, idWide4KAVXVNNI:
		unpackQ4KAVX2(d, s, steps)
	case idWide5KAVX2, idWide5KAVXVNNI:
		unpackQ5KAVX2(d, s, steps)
	case idWide6KAVX2, idWide6KAVXVNNI:
		unpackQ6KAVX2(d, s, steps)
	}
}

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
