package nn

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// Activation is the operation between the two halves of an MLP.
type Activation uint8

const (
	None           Activation = iota
	SiLUMul                   // silu(X) · Up
	GELU                      // 0.5·x·(1+erf(x/√2))
	SiLU                      // x·σ(x)
	GELUMul                   // gelu(X) · Up, gelu by its approximation with tanh
	ClampedMul                // x·σ(1.702·x) · (Up + 1), x and Up within ±7, x from above only (gpt-oss)
	SquaredReLU               // max(x, 0)²
	ReLUMul                   // max(X, 0) · Up
	XIELUOf                   // of Source.XIELU
	SparseGELUMul             // GELUMul of what X exceeds a cut by, which needs whole rows (Gemma 3n)
	SquaredReLUMul            // max(X, 0)² · Up
	GELUTanh                  // 0.5·x·(1+tanh(√(2/π)·(x+0.044715·x³)))
	CappedSiLUMul             // min(silu(X), Cut) · Up within ±Cut (Step 3.5)
)

// Source is the input of a product: rows of X, passed through Act, then normalised if Norm is set.
// Rows are made one by one on the way into the product and never stored.
type Source struct {
	X    Mat
	At   []int32 // the rows of X to use; nil: all. Not with a Recorder
	Norm *Norm
	Act  Activation
	Up   Mat // for activations with Mul in their names

	Rounded bool // each row is then rounded to eight bits with one scale, its largest magnitude / 127 (BitNet)

	XIELU *XIELU  // for XIELUOf
	Cut   float32 // for SparseGELUMul, standard deviations of a row above its mean; for CappedSiLUMul, the cap

	// Copies lists the rows that each row of X becomes, the same number k for each: k for row 0,
	// then k for row 1. nil: row i becomes row i. It excludes a Recorder and At.
	Copies []int32

	// Factors multiply the copies; nil: 1.
	Factors []float32

	// With is a second matrix whose columns follow X's, normalised by its own norm if WithNorm is
	// set. It excludes Act.
	With     Mat
	WithNorm *Norm
}

// rows is the number of rows.
func (s *Source) rows() int {
	if s.Copies != nil {
		return len(s.Copies)
	}
	return s.made()
}

// made is the number of rows that are made, not counting copies.
func (s *Source) made() int {
	if s.At != nil {
		return len(s.At)
	}
	return s.X.Rows
}

// copies returns the rows that row i becomes, where there are Copies.
func (s *Source) copies(i int) []int32 {
	k := len(s.Copies) / s.X.Rows
	return s.Copies[i*k : (i+1)*k]
}

// Cols is the width of a row as it enters the product.
func (s *Source) Cols() int { return s.X.Cols + s.With.Cols }

// Row returns row i of the source: X's own row, or one made from it in the given scratch.
func (s *Source) Row(i int, scratch []float32) []float32 {
	if s.At != nil {
		i = int(s.At[i])
	}
	x := s.X.Row(i)
	if s.With.Cols > 0 {
		s.Norm.orCopy(scratch[:len(x)], x)
		s.WithNorm.orCopy(scratch[len(x):], s.With.Row(i))
		return scratch
	}
	x = s.activate(i, x, scratch)
	if s.Norm != nil {
		s.Norm.apply(scratch, x)
		x = scratch
	}
	if s.Rounded {
		roundToBytes(scratch, x)
		x = scratch
	}
	return x
}

// roundToBytes rounds x to multiples of its largest magnitude / 127.
func roundToBytes(dst, x []float32) {
	top := float32(1e-5) // as in training
	for _, v := range x {
		top = max(top, v, -v)
	}
	scale := 127 / top
	for i, v := range x {
		dst[i] = float32(math.RoundToEven(float64(float32(v*scale)))) / scale
	}
}

// activate returns row i of X, x, passed through Act. scratch may be x.
func (s *Source) activate(i int, x, scratch []float32) []float32 {
	switch {
	case s.Act == SiLUMul:
		simd.SiLUMul(scratch, x, s.Up.Row(i))
	case s.Act == GELUMul:
		simd.GELUMul(scratch, x, s.Up.Row(i))
	case s.Act == SparseGELUMul:
		sparseGELU(scratch, x, s.Up.Row(i), s.Cut)
	case s.Act == ClampedMul:
		clampedMul(scratch, x, s.Up.Row(i))
	case s.Act == CappedSiLUMul:
		withoutUp(simd.SiLUMul, scratch, x)
		up := s.Up.Row(i)
		for j, v := range scratch[:len(x)] {
			scratch[j] = min(v, s.Cut) * min(max(up[j], -s.Cut), s.Cut)
		}
	case s.Act == GELU:
		simd.GELU(scratch, x)
	case s.Act == SquaredReLU:
		for j, v := range x {
			v = max(v, 0)
			scratch[j] = v * v
		}
	case s.Act == ReLUMul:
		up := s.Up.Row(i)
		for j, v := range x {
			scratch[j] = max(v, 0) * up[j]
		}
	case s.Act == SquaredReLUMul:
		up := s.Up.Row(i)
		for j, v := range x {
			v = max(v, 0)
			scratch[j] = float32(v*v) * up[j]
		}
	case s.Act == XIELUOf:
		s.XIELU.apply(scratch, x)
	case s.Act == GELUTanh:
		withoutUp(simd.GELUMul, scratch, x)
	case s.Act == SiLU:
		withoutUp(simd.SiLUMul, scratch, x)
	default:
		return x
	}
	return scratch
}

// ones stand for Up where there is none.
var ones = [256]float32(slices.Repeat([]float32{1}, 256))

// withoutUp computes dst = act(x), where act multiplies by Up. dst may be x.
func withoutUp(act func(dst, x, up []float32), dst, x []float32) {
	for at := 0; at < len(x); at += len(ones) {
		end := min(at+len(ones), len(x))
		act(dst[at:end], x[at:end], ones[:])
	}
}

// clampedMul computes x/(1 + e^−1.702x)·(y + 1), where x = min(gate, 7) and y is up clamped to ±7.
// dst may be gate.
func clampedMul(dst, gate, up []float32) {
	const limit, alpha = 7, 1.702
	var buf [256]float32
	for len(gate) > 0 {
		n := min(len(gate), len(buf))
		e := buf[:n]
		for i, g := range gate[:n] {
			e[i] = -alpha * min(g, limit)
		}
		simd.Exp(e, e)
		for i, g := range gate[:n] {
			dst[i] = float32(min(g, limit)/(1+e[i])) * (min(max(up[i], -limit), limit) + 1)
		}
		dst = dst[n:]
		gate = gate[n:]
		up = up[n:]
	}
}

// Intake is the rows of a source on their way into products, in every type that the products read.
type Intake struct {
	e    *Exec
	src  Source
	kept Mat // receives the rows too, in f32, unless it has no data
	uses [inputTypes]bool
	rows intakeRows
	made uint32       // counts the sources
	own  []intakeRows // of each worker, if it makes all rows for itself
	each bool         // whether it does
}

// inputs are rows in every type that products read.
type inputs [inputTypes]gemm.Input

// reset makes room for rows in the types in use.
func (in *inputs) reset(uses *[inputTypes]bool, rows, cols int) {
	for t, used := range uses {
		if used {
			in[t].Reset(gemm.Type(t), rows, cols)
		}
	}
}

// set sets row i, of a source, in the types in use.
func (in *inputs) set(uses *[inputTypes]bool, src *Source, i int, x []float32) {
	for t, used := range uses {
		switch {
		case used && src.Rounded:
			in[t].SetWholeRow(i, x)
		case used:
			in[t].SetRow(i, x)
		}
	}
}

// copy copies the first of rows, which is set, to the others.
func (in *inputs) copy(uses *[inputTypes]bool, rows []int32) {
	for t, used := range uses {
		for _, i := range rows[1:] {
			if used {
				in[t].CopyRow(int(i), int(rows[0]))
			}
		}
	}
}

type intakeRows struct {
	inputs inputs
	made   uint32 // the number of the source they come from
	_      [64]byte
}

// fewElements is the largest number of elements in a source for which each worker makes all rows
// for itself: this takes about as long as waiting for the rows of the others.
const fewElements = 4 << 10

// Enter plans making the rows of a source, for products in the types used. kept also receives them,
// unless it has no data.
func (n *Intake) Enter(e *Exec, src Source, uses [inputTypes]bool, kept Mat) {
	n.begin(e, src, uses, kept)
	rows, cols := src.rows(), src.Cols()
	n.each = kept.Data == nil && (rows == 1 || rows*cols <= fewElements)
	if n.each {
		for len(n.own) < e.Threads() {
			n.own = append(n.own, intakeRows{})
		}
		return
	}
	n.rows.reset(n)
	e.perRow(src.made(), cols, n, false)
}

// await plans for the rows to be made part by part, by the phase planned next; src has only the shape of X.
func (n *Intake) await(e *Exec, src Source, uses [inputTypes]bool) {
	n.begin(e, src, uses, Mat{})
	n.each = false
	n.rows.reset(n)
}

// part sets the part of row i that starts at column at.
func (n *Intake) part(i, at int, x []float32) {
	for t := range n.uses {
		if n.uses[t] {
			n.rows.inputs[t].SetPart(i, at, x)
		}
	}
}

func (n *Intake) begin(e *Exec, src Source, uses [inputTypes]bool, kept Mat) {
	n.e = e
	n.src = src
	n.uses = uses
	n.kept = kept
	n.made++
	e.grow(scratchSizes{row: src.Cols() * (1 + min(len(src.Factors), 1))})
}

// Input returns the rows in the form that matrices of a type read.
func (n *Intake) Input(worker int, t gemm.Type) *gemm.Input {
	t = t.Activations()
	if !n.each {
		return &n.rows.inputs[t]
	}
	own := &n.own[worker]
	if own.made != n.made {
		own.make(n, worker)
		own.made = n.made
	}
	return &own.inputs[t]
}

// Do makes row i and hands it to every input type in use.
func (n *Intake) Do(worker, i int) { n.rows.set(n, worker, i) }

func (r *intakeRows) reset(n *Intake) { r.inputs.reset(&n.uses, n.src.rows(), n.src.Cols()) }

func (r *intakeRows) make(n *Intake, worker int) {
	r.reset(n)
	for i := range n.src.made() {
		r.set(n, worker, i)
	}
}

func (r *intakeRows) set(n *Intake, worker, i int) {
	x := n.src.Row(i, n.e.scratch[worker].row[:n.src.Cols()])
	if n.kept.Data != nil {
		copy(n.kept.Row(i), x)
	}
	if n.src.Copies == nil {
		r.inputs.set(&n.uses, &n.src, i, x)
		return
	}
	rows := n.src.copies(i)
	if n.src.Factors != nil {
		scaled := n.e.scratch[worker].row[len(x):][:len(x)]
		for k, row := range rows {
			copy(scaled, x)
			simd.Scale(scaled, n.src.Factors[i*len(rows)+k])
			r.inputs.set(&n.uses, &n.src, int(row), scaled)
		}
		return
	}
	r.inputs.set(&n.uses, &n.src, int(rows[0]), x)
	r.inputs.copy(&n.uses, rows)
}
