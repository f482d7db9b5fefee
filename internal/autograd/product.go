package autograd

import (
	"fmt"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// Products multiplies matrices of activations, gradients and masters on the kernels of
// internal/kernels/gemm: one operand is packed as weights are, the other enters as rows. The three
// orientations of training are
//
//	y  = x·Wᵀ   MulT: W packed as it is           (n×in)·(out×in)ᵀ
//	dx = dy·W   Mul:  W packed transposed          (n×out)·(out×in)
//	dW = dyᵀ·x  TMul: x packed transposed, dy's columns enter as rows
//
// Every element is one chain over the shared dimension in ascending order, whatever the threads.
type Products struct {
	pool    *par.Pool
	kind    gemm.Type
	packs   [2]*gemm.Matrix // operands packed on the fly, by place in a product
	inputs  []gemm.Input
	columns []float32 // an operand that is transposed before it is packed
}

// NewProducts returns products of operands of type t (F32 or BF16) on the pool's workers.
func NewProducts(pool *par.Pool, t gemm.Type) *Products {
	return &Products{pool: pool, kind: t, packs: [2]*gemm.Matrix{gemm.Empty(t), gemm.Empty(t)}}
}

// Pool returns the pool on which the products run.
func (m *Products) Pool() *par.Pool { return m.pool }

// MulT computes dst = a·bᵀ.
func (m *Products) MulT(dst, a, b nn.Mat) {
	w := m.scratch(0, b.Rows, b.Cols)
	m.pack(w, b)
	m.mul(dst, w, a)
}

// Mul computes dst = a·b.
func (m *Products) Mul(dst, a, b nn.Mat) {
	w := m.scratch(0, b.Cols, b.Rows)
	m.packTransposed(w, b)
	m.mul(dst, w, a)
}

// TMul computes dst = aᵀ·b.
func (m *Products) TMul(dst, a, b nn.Mat) { m.transposedMul(b, false, [2]nn.Mat{dst, a}) }

// AddTMul computes dst += aᵀ·b for every pair of dst and a.
func (m *Products) AddTMul(b nn.Mat, pairs ...[2]nn.Mat) { m.transposedMul(b, true, pairs...) }

func (m *Products) transposedMul(b nn.Mat, add bool, pairs ...[2]nn.Mat) {
	w := m.scratch(0, b.Cols, b.Rows)
	m.packTransposed(w, b)
	for _, p := range pairs {
		dst, a := p[0], p[1]
		if dst.Rows != a.Cols || dst.Cols != b.Cols || a.Rows != b.Rows {
			panic(fmt.Sprintf("autograd: product of the transpose of %d×%d and %d×%d into %d×%d", a.Rows, a.Cols, b.Rows,
				b.Cols, dst.Rows, dst.Cols))
		}
		rows := m.scratch(1, a.Cols, a.Rows)
		m.packTransposed(rows, a)
		// Tasks are squares of panels, so that even a narrow product has at least one for every worker.
		const side = 4
		across := (w.Panels() + side - 1) / side
		each(m.pool, (rows.Panels()+side-1)/side*across, func(_, t int) {
			i, o := t/across*side, t%across*side
			w.MulPacked(dst.Data, dst.Stride, rows, i, min(i+side, rows.Panels()), o, min(o+side, w.Panels()), add)
		})
	}
}

// scratch returns the matrix for packing the operand at a place in a product, in another shape.
func (m *Products) scratch(place, out, in int) *gemm.Matrix {
	w := m.packs[place]
	if err := w.Resize(out, in); err != nil {
		panic(fmt.Sprintf("autograd: operand of %d × %d: %v", out, in, err)) // no memory
	}
	return w
}

// inputRows is the number of a product's rows that share one reading of a panel: their part of the
// operand stays in the second-level cache.
const inputRows = 128

// mul computes dst = a·wᵀ.
func (m *Products) mul(dst nn.Mat, w *gemm.Matrix, a nn.Mat) {
	n, k := a.Rows, a.Cols
	if dst.Rows != n || dst.Cols != w.Out() || w.In() != k {
		panic(fmt.Sprintf("autograd: product of %d×%d and %d×%d into %d×%d", n, k, w.In(), w.Out(), dst.Rows, dst.Cols))
	}
	// Rows so long that a part of them would overflow the cache are processed in smaller parts.
	part := inputRows
	for part > 16 && part*k > 128<<10 {
		part /= 2
	}
	parts := (n + part - 1) / part
	for len(m.inputs) < parts {
		m.inputs = append(m.inputs, gemm.Input{})
	}
	for c := range parts {
		m.inputs[c].Reset(m.kind, min(part, n-c*part), k)
	}
	const run = 16 // rows of a task
	each(m.pool, (n+run-1)/run, func(_, t int) {
		for i := t * run; i < min((t+1)*run, n); i++ {
			m.inputs[i/part].SetRow(i%part, a.Row(i))
		}
	})
	const tasksPerWorker = 4
	panels := w.Panels()
	group := max(1, min(panels, parts*panels/(m.pool.Threads()*tasksPerWorker)))
	groups := (panels + group - 1) / group
	each(m.pool, parts*groups, func(_, t int) {
		c, g := t/groups, t%groups
		w.Mul(dst.Data[c*part*dst.Stride:], dst.Stride, &m.inputs[c], g*group, min((g+1)*group, panels))
	})
}

// transpose writes the columns of a to the rows of dst, which are stride apart.
func transpose(dst []float32, stride int, a nn.Mat) {
	for r0 := 0; r0 < a.Rows; r0 += 16 {
		r1 := min(r0+16, a.Rows)
		for c := range a.Cols {
			o := c*stride + r0
			d := dst[o : o+r1-r0]
			for r := range d {
				d[r] = a.Data[(r0+r)*a.Stride+c]
			}
		}
	}
}

// packTransposed packs the transpose of a into w; a is in × out.
func (m *Products) packTransposed(w *gemm.Matrix, a nn.Mat) {
	each(m.pool, w.Panels(), func(_, p int) { w.PackTransposed(a.Data, a.Stride, p, p+1) })
}

// pack packs a into w; a is out × in.
func (m *Products) pack(w *gemm.Matrix, a nn.Mat) {
	m.columns = grow(m.columns, a.Rows*a.Cols)
	each(m.pool, w.Panels(), func(_, p int) {
		from, to := p*gemm.Panel, min((p+1)*gemm.Panel, a.Rows)
		transpose(m.columns[from:], a.Rows, nn.Mat{Rows: to - from, Cols: a.Cols, Stride: a.Stride, Data: a.Data[from*a.Stride:]})
		w.PackTransposed(m.columns, a.Rows, p, p+1)
	})
}
