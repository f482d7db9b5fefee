package nn

import (
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/simd"
)

// Linear is y = W·x + b. W is out×in, packed; Bias may be nil.
type Linear struct {
	W    *gemm.Matrix
	Bias []float32
}

// Proj is one product of several that share their input. To, when set, takes Dst in: the
// residual stream, as by Exec.Add, but while the results are at hand.
type Proj struct {
	Linear *Linear
	Dst    Mat // n × out
	To     Mat
}

// Activation is what happens between the two halves of an MLP.
type Activation uint8

const (
	None    Activation = iota
	SiLUMul            // silu(X) · Up
	GELU               // 0.5·x·(1+erf(x/√2))
	SiLU               // x·σ(x)
)

// Source is the input of a product: rows of X, normalised when Norm is set, or passed
// through Act. It is made row by row on the way into the product and never stored.
type Source struct {
	X    Mat
	Norm *Norm
	Act  Activation
	Up   Mat // for SiLUMul

	// With is a second matrix whose columns follow X's, normalised by a norm of its own when WithNorm is set. There is no Act then.
	With     Mat
	WithNorm *Norm
}

// cols is the width of a row as it enters the product.
func (s *Source) cols() int { return s.X.Cols + s.With.Cols }

// Linear computes every projection of the source: Dst[i] = W·source(X[i]) + b for each row i.
func (e *Exec) Linear(src Source, projs ...Proj) {
	var keep *linearRecord
	if e.tape != nil {
		keep = e.tape.keep(src, projs)
	}
	e.region(e.ready(src, keep, projs))
	if e.tape != nil {
		for _, p := range projs {
			if p.To.Data != nil {
				e.Add(p.To, p.Dst)
			}
		}
	}
}

// Stage readies what Linear computes and leaves it to the caller to run: a stage of a Rider, whose Exec has no tape. One stage of an Exec is
// under way at a time.
func (e *Exec) Stage(src Source, projs ...Proj) (tasks int, j par.Job) {
	return e.ready(src, nil, projs)
}

// ready makes the rows of a product, and the tasks that compute it.
func (e *Exec) ready(src Source, keep *linearRecord, projs []Proj) (tasks int, job par.Job) {
	j := &e.linearJob
	j.projs = append(j.projs[:0], projs...)
	uses := [inputTypes]bool{}
	j.panels = 0
	for _, p := range projs {
		uses[p.Linear.W.Type()] = true
		j.panels += p.Linear.W.Panels()
	}
	e.enter(src, uses, keep)

	// Several tasks a worker even out cores that are slower or interrupted; too small a
	// task would spend its time on claiming and on the first misses of a new stream.
	// (A long run for each worker first and short ones after gained nothing; twice as many
	// tasks cost 5 % of a pass of 16 rows.)
	j.chunk = max(1, j.panels/(e.Threads()*tasksPerWorker))
	return (j.panels + j.chunk - 1) / j.chunk, j
}

const tasksPerWorker = 4

// enter makes the rows of a source, and of them the inputs of every type that products with them use.
func (e *Exec) enter(src Source, uses [inputTypes]bool, keep *linearRecord) {
	j := &e.linearJob
	j.e, j.src, j.uses, j.keep = e, src, uses, keep
	n, in := src.X.Rows, src.cols()
	for w := range e.scratch {
		e.scratch[w].row = grow(e.scratch[w].row, in)
	}
	for t, used := range uses {
		if used {
			e.inputs[t].Reset(gemm.Type(t), n, in)
		}
	}
	e.perRow(n, in, (*convertJob)(j))
}

type linearJob struct {
	e             *Exec
	src           Source
	keep          *linearRecord // under a tape
	projs         []Proj
	uses          [inputTypes]bool
	panels, chunk int
}

// convertJob makes row i of the source and hands it to every input type in use.
type convertJob linearJob

func (j *convertJob) Do(worker, i int) {
	row := j.e.scratch[worker].row[:j.src.cols()]
	x := j.src.row(i, row)
	if j.keep != nil {
		j.keep.keepRow(i, x)
	}
	for t := range j.uses {
		if j.uses[t] {
			j.e.inputs[t].SetRow(i, x)
		}
	}
}

// row returns row i of the source: X's own, or what is made of it in the scratch given.
func (s *Source) row(i int, scratch []float32) []float32 {
	x := s.X.Row(i)
	switch {
	case s.With.Cols > 0:
		s.Norm.orCopy(scratch[:len(x)], x)
		s.WithNorm.orCopy(scratch[len(x):], s.With.Row(i))
	case s.Norm != nil:
		s.Norm.apply(scratch, x)
	case s.Act == SiLUMul:
		simd.SiLUMul(scratch, x, s.Up.Row(i))
	case s.Act == GELU:
		simd.GELU(scratch, x)
	case s.Act == SiLU:
		for j := range scratch {
			scratch[j] = 1
		}
		simd.SiLUMul(scratch, x, scratch)
	default:
		return x
	}
	return scratch
}

// Do computes the t-th chunk of panels, counted through the projections one after another.
func (j *linearJob) Do(_, t int) {
	from, to := t*j.chunk, min((t+1)*j.chunk, j.panels)
	for i := range j.projs {
		p := &j.projs[i]
		w := p.Linear.W
		n := w.Panels()
		if from < n && to > 0 {
			p.run(&j.e.inputs[w.Type()], max(from, 0), min(to, n))
			if j.e.tape == nil {
				p.add(max(from, 0), min(to, n))
			}
		}
		from, to = from-n, to-n
	}
}

func (p *Proj) run(x *gemm.Input, p0, p1 int) {
	w := p.Linear.W
	w.Mul(p.Dst.Data, p.Dst.Stride, x, p0, p1)
	if b := p.Linear.Bias; b != nil {
		o0, o1 := p0*gemm.Panel, min(p1*gemm.Panel, w.Out())
		for i := range p.Dst.Rows {
			simd.Add(p.Dst.Row(i)[o0:o1], b[o0:o1])
		}
	}
}

// add takes the outputs of panels [p0, p1) into To.
func (p *Proj) add(p0, p1 int) {
	if p.To.Data == nil {
		return
	}
	o0, o1 := p0*gemm.Panel, min(p1*gemm.Panel, p.Linear.W.Out())
	for i := range p.Dst.Rows {
		simd.Add(p.To.Row(i)[o0:o1], p.Dst.Row(i)[o0:o1])
	}
}
