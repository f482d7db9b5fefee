package autograd

import (
	"fmt"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// Param is a trained tensor: master values in f32 and the gradient of the loss.
type Param struct {
	Name       string
	Rows, Cols int  // out × in for a matrix; 1 × n for a vector
	Vector     bool // a norm's weights or a bias: Shape has one dimension
	Data, Grad []float32

	w  *gemm.Matrix // the packed matrix by which layers multiply
	wt *gemm.Matrix // transposed, for the gradient of a product's input
}

// Shape is the tensor's shape, outermost dimension first.
func (p *Param) Shape() []int {
	if p.Vector {
		return []int{p.Cols}
	}
	return []int{p.Rows, p.Cols}
}

// Mat returns the masters of a matrix.
func (p *Param) Mat() nn.Mat { return nn.Mat{Rows: p.Rows, Cols: p.Cols, Stride: p.Cols, Data: p.Data} }

// GradMat returns the gradient of a matrix.
func (p *Param) GradMat() nn.Mat {
	return nn.Mat{Rows: p.Rows, Cols: p.Cols, Stride: p.Cols, Data: p.Grad}
}

// Params is the trained tensors of a network, in the order of creation. Layers are built from the
// results of Matrix and Vector, as they are built from loaded weights for serving; a [Tape] finds
// the parameter behind each.
type Params struct {
	kind   gemm.Type
	list   []*Param
	matrix map[*gemm.Matrix]*Param
	vector map[*float32]*Param
}

// NewParams returns an empty list whose matrices are multiplied as t: F32, or BF16 with products of
// rounded operands but sums and masters in f32.
func NewParams(t gemm.Type) *Params {
	return &Params{kind: t, matrix: map[*gemm.Matrix]*Param{}, vector: map[*float32]*Param{}}
}

// Type is the type in which matrices are multiplied.
func (p *Params) Type() gemm.Type { return p.kind }

// Matrix adds a matrix of zeros, to be a Linear's W. Products use its values at the last Pack.
func (p *Params) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	w, err := gemm.New(p.kind, out, in)
	if err != nil {
		return nil, fmt.Errorf("parameter %s: %w", name, err)
	}
	wt, err := gemm.New(p.kind, in, out)
	if err != nil {
		return nil, fmt.Errorf("parameter %s: %w", name, err)
	}
	q := &Param{Name: name, Rows: out, Cols: in, Data: make([]float32, out*in), Grad: make([]float32, out*in), w: w, wt: wt}
	p.list = append(p.list, q)
	p.matrix[w] = q
	return w, nil
}

// Vector adds a vector of zeros, to be a norm's weights or a bias. Its current values are always used.
func (p *Params) Vector(name string, n int) []float32 {
	q := &Param{Name: name, Rows: 1, Cols: n, Vector: true, Data: make([]float32, n), Grad: make([]float32, n)}
	p.list = append(p.list, q)
	p.vector[&q.Data[0]] = q
	return q.Data
}

// All lists the parameters in the order of creation.
func (p *Params) All() []*Param { return p.list }

// Count is the number of trained values.
func (p *Params) Count() int {
	n := 0
	for _, q := range p.list {
		n += len(q.Data)
	}
	return n
}

// Of returns the parameter behind a product's matrix, nil for one that is not trained.
func (p *Params) Of(w *gemm.Matrix) *Param { return p.matrix[w] }

func (p *Params) of(v []float32) *Param {
	if len(v) == 0 {
		return nil
	}
	return p.vector[&v[0]]
}

// ZeroGrad clears all gradients.
func (p *Params) ZeroGrad() {
	for _, q := range p.list {
		clear(q.Grad)
	}
}

// Pack makes the products use the current masters.
func (p *Params) Pack(m *Products) {
	for _, q := range p.list {
		if q.w != nil {
			a := nn.Mat{Rows: q.Rows, Cols: q.Cols, Stride: q.Cols, Data: q.Data}
			m.pack(q.w, a)
			m.packTransposed(q.wt, a)
		}
	}
}

// each runs f for tasks 0 to n-1 on the pool. Closures are only for training: serving allocates
// nothing and keeps its jobs.
func each(pool *par.Pool, n int, f func(worker, task int)) { pool.Run(n, jobFunc(f)) }

type jobFunc func(worker, task int)

func (f jobFunc) Do(worker, task int) { f(worker, task) }

// perRow runs f for rows 0 to n-1, gradRows to a task.
func (t *Tape) perRow(n int, f func(i int)) {
	each(t.pool(), (n+gradRows-1)/gradRows, func(_, c int) {
		for i := c * gradRows; i < min((c+1)*gradRows, n); i++ {
			f(i)
		}
	})
}

// grow returns s with at least n elements; contents are undefined.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
