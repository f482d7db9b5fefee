// Package gemm multiplies a few rows of activations by a large weight matrix: the shape of a pass
// over a token tree, where 1 to 64 rows share one reading of the weights.
//
// Weights are packed once, at load, into panels of [Panel] outputs. Outputs lie in the lanes of a
// vector register and K is walked in order, so every output element is one chain of operations in
// one order, whatever the number of rows, the tiling, the thread or the instruction set: the "same
// bits" law of docs/design.md. The chains are
//
//	F32, F16  acc = fma(w[k], x[k], acc), k ascending
//	BF16      x rounded to bf16; for each pair of k: acc = fma(w[k+1], x[k+1], acc), then
//	          acc = fma(w[k], x[k], acc); subnormal operands and results are zero
//	          (what VDPBF16PS computes)
//	Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4  x quantised to int8 with one scale per block of 32 elements, dx;
//	          products of a block summed exactly in int32, s; then acc = fma(s, dw·dx, acc) over the blocks (blocks.go)
//	Q2_K to Q6_K  x quantised with one scale per [Group] elements, which have weights' scales
//	          for every 32 or 16 (kquants.go)
//	IQ1 to IQ3, TQ1_0, TQ2_0, Q1_0, Q2_0  the same, with a scale for every 16 (coded.go)
//
// all in f32 with one rounding per fma. Each subject has its file: layout.go and pack.go the packed
// weights, input.go the activations, mul.go the tiling, portable.go the definition in Go, _asm and
// internal/kernels/_neon/gemm the generators of the assembly.
package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"

	"github.com/grovellm/grove/internal/kernels/num"
)

// Type is the encoding of a weight matrix, in the file and packed.
type Type uint8

const (
	F32 Type = iota
	F16
	BF16
	Q8_0   // blocks of 32 elements: an f16 scale, then 32 int8
	Q4_0   // the same, of 4 bits
	Q4_1   // of 4 bits, with an f16 minimum
	Q5_0   // of 5 bits
	Q5_1   // of 5 bits, with a minimum
	IQ4_NL // an f16 scale, then 32 times 4 bits, each of which stands for one of 16 integers
	MXFP4  // a scale that is a power of two, then the same with other integers
	Q4_K   // blocks of 256 in 8 sub-blocks, each with a scale and a minimum of 6 bits
	Q5_K   // the same, of 5 bits
	Q6_K   // blocks of 256 in 16 sub-blocks, scales of 8 bits
	Q2_K   // the same, scales and minimums of 4 bits
	Q3_K   // the same, scales of 6 bits

	// Elements with one to three bits, in the order of package codebook.
	IQ1_S
	IQ1_M
	IQ2_XXS
	IQ2_XS
	IQ2_S
	IQ3_XXS
	IQ3_S
	TQ1_0
	TQ2_0
	Q1_0
	Q2_0
	NumTypes
)

func (t Type) String() string {
	if t >= NumTypes {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	if t.coded() {
		return strings.ToLower(t.code().String())
	}
	return [...]string{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "mxfp4",
		"q4_k", "q5_k", "q6_k", "q2_k", "q3_k"}[t]
}

// Activations returns the type whose input products with weights of type t read. Types with the same one share rows.
func (t Type) Activations() Type {
	switch {
	case t.coded():
		return IQ1_S
	case t >= Q4_K:
		return Q4_K
	case t >= Q8_0:
		return Q8_0
	}
	return t
}

// integer reports whether products are of int8, which are exact within a block.
func (t Type) integer() bool { return t >= Q8_0 }

// whole returns the number that a row's elements must be a multiple of.
func (t Type) whole() int {
	switch {
	case t >= Q4_K:
		return super
	case t >= Q8_0:
		return block
	}
	return 1
}

// rowBytes returns the size of a row of `in` weights in the file.
func (t Type) rowBytes(in int) int {
	switch {
	case t == F32:
		return in * 4
	case t.coded():
		return in / super * t.code().Bytes()
	case t >= Q4_K:
		return in / super * kTypes[t].file
	case t >= Q8_0:
		return in / block * blockTypes[t].file
	}
	return in * 2
}

// Matrix is a weight matrix of out × in elements, packed for multiplication.
type Matrix struct {
	t       Type
	out, in int
	panel   int // bytes of a panel
	data    []byte
	owner   any // keeps data alive
}

// New makes room for a matrix; PackPanels fills it. The memory is freed once the matrix is
// unreachable.
func New(t Type, out, in int) (*Matrix, error) {
	m := Empty(t)
	return m, m.Resize(out, in)
}

// Empty returns a matrix without elements, to be resized.
func Empty(t Type) *Matrix { return &Matrix{t: t} }

// Resize gives a matrix that will be packed anew another shape, in its existing memory if that is large
// enough: operands packed in training have as many rows as a text has tokens. The old contents are lost.
func (m *Matrix) Resize(out, in int) (err error) {
	const limit = math.MaxInt / 64 // of elements: no size below overflows
	switch {
	case m.t >= NumTypes:
		return fmt.Errorf("gemm: unknown weight type %d", uint8(m.t))
	case out <= 0 || in <= 0 || in > limit/(out+Panel):
		return fmt.Errorf("gemm: a matrix of %d × %d cannot be", out, in)
	case in%m.t.whole() != 0:
		return fmt.Errorf("gemm: %v rows hold a multiple of %d elements, not %d", m.t, m.t.whole(), in)
	}
	m.out, m.in = out, in
	m.panel = panelBytes(m.t, in)
	if size := m.Panels() * m.panel; size <= cap(m.data) {
		m.data = m.data[:size]
	} else if m.data, m.owner, err = allocate(size); err != nil {
		return fmt.Errorf("gemm: %d × %d %v: %w", out, in, m.t, err)
	}
	return nil
}

func (m *Matrix) Type() Type { return m.t }

// Out is the number of outputs: the rows of the matrix in a file.
func (m *Matrix) Out() int { return m.out }

// In is the number of inputs, K.
func (m *Matrix) In() int { return m.in }

// Panels is the number of panels; the last one may be partly filled.
func (m *Matrix) Panels() int { return (m.out + Panel - 1) / Panel }

// Bytes is the packed size, all of which a product reads once.
func (m *Matrix) Bytes() int { return len(m.data) }

// PackedBytes returns the Bytes of a matrix with the given type and shape.
func PackedBytes(t Type, out, in int) int { return (out + Panel - 1) / Panel * panelBytes(t, in) }

// Row widens the weights of output i to f32 (an embedding looked up in a tied head).
// dst holds In elements.
func (m *Matrix) Row(dst []float32, i int) {
	dst = dst[:m.in]
	if i < 0 || i >= m.out {
		panic(fmt.Sprintf("gemm: row %d of a matrix of %d", i, m.out))
	}
	w := m.data[i/Panel*m.panel:][:m.panel]
	le, lane := binary.LittleEndian, i%Panel
	switch m.t {
	case F32:
		for k := range dst {
			dst[k] = math.Float32frombits(le.Uint32(w[(k*Panel+lane)*4:]))
		}
	case F16:
		for k := range dst {
			dst[k] = num.F16(le.Uint16(w[(k*Panel+lane)*2:]))
		}
	case BF16:
		for k := range dst {
			dst[k] = num.BF16(le.Uint16(w[(k/2*Panel+lane)*4+k%2*2:]))
		}
	case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
		k := &kTypes[m.t]
		for ; len(dst) > 0; dst, w = dst[super:], w[k.packed:] {
			k.widen(dst[:super], w, lane)
		}
	case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4:
		blockTypes[m.t].widen(dst, w, lane)
	default:
		widenCoded(m.t, dst, w, lane)
	}
	runtime.KeepAlive(m)
}
