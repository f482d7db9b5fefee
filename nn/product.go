package nn

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/num"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/simd"
)

// Products multiplies matrices of activations, gradients and masters on the kernels of
// internal/gemm: one operand is packed as weights are, the other enters as rows. The three
// orientations of training are
//
//	y  = x·Wᵀ   MulT: W packed as it is           (n×in)·(out×in)ᵀ
//	dx = dy·W   Mul:  W packed transposed          (n×out)·(out×in)
//	dW = dyᵀ·x  TMul: x packed transposed, dy's columns enter as rows
//
// Every element is one chain over the shared dimension in ascending order, whatever the threads.
type Products struct {
	pool   *par.Pool
	kind   gemm.Type
	packs  map[[2]int]*gemm.Matrix // operands packed on the way, by shape
	inputs []gemm.Input
	bytes  []byte      // an operand on its way into panels
	rows   [][]float32 // per worker: some rows of it
	sum    []float32
}

// NewProducts returns products of operands of type t (F32 or BF16) on the pool's workers.
func NewProducts(pool *par.Pool, t gemm.Type) *Products {
	return &Products{
		pool: pool, kind: t, packs: map[[2]int]*gemm.Matrix{},
		rows: make([][]float32, pool.Threads()),
	}
}

// Pool is where the products run.
func (m *Products) Pool() *par.Pool { return m.pool }

// MulT computes dst = a·bᵀ.
func (m *Products) MulT(dst, a, b Mat) {
	w := m.scratch(b.Rows, b.Cols)
	m.pack(w, b)
	m.mul(dst, w, a, false)
}

// Mul computes dst = a·b.
func (m *Products) Mul(dst, a, b Mat) {
	w := m.scratch(b.Cols, b.Rows)
	m.packTransposed(w, b)
	m.mul(dst, w, a, false)
}

// TMul computes dst = aᵀ·b.
func (m *Products) TMul(dst, a, b Mat) {
	w := m.scratch(b.Cols, b.Rows)
	m.packTransposed(w, b)
	m.mul(dst, w, a, true)
}

// AddTMul computes dst += aᵀ·b for every pair of dst and a.
func (m *Products) AddTMul(b Mat, pairs ...[2]Mat) {
	w := m.scratch(b.Cols, b.Rows)
	m.packTransposed(w, b)
	for _, p := range pairs {
		dst, a := p[0], p[1]
		m.sum = grow(m.sum, dst.Rows*dst.Cols)
		sum := Mat{Rows: dst.Rows, Cols: dst.Cols, Stride: dst.Cols, Data: m.sum}
		m.mul(sum, w, a, true)
		each(m.pool, (dst.Rows+gradRows-1)/gradRows, func(_, c int) {
			for i := c * gradRows; i < min((c+1)*gradRows, dst.Rows); i++ {
				simd.Add(dst.Row(i), sum.Row(i))
			}
		})
	}
}

// scratch returns a matrix to pack an operand in; one of each shape is kept.
func (m *Products) scratch(out, in int) *gemm.Matrix {
	w := m.packs[[2]int{out, in}]
	if w == nil {
		var err error
		if w, err = gemm.New(m.kind, out, in); err != nil {
			panic(fmt.Sprintf("nn: operand of %d × %d: %v", out, in, err)) // no memory
		}
		m.packs[[2]int{out, in}] = w
	}
	return w
}

// inputRows is the number of rows of a product that share one reading of a panel: their part
// of the operand stays in the second-level cache.
const inputRows = 128

// mul computes dst = a·wᵀ, or aᵀ·wᵀ when a is transposed.
func (m *Products) mul(dst Mat, w *gemm.Matrix, a Mat, transposed bool) {
	n, k := a.Rows, a.Cols
	if transposed {
		n, k = k, n
	}
	if dst.Rows != n || dst.Cols != w.Out() || w.In() != k {
		panic(fmt.Sprintf("nn: product of %d×%d and %d×%d into %d×%d", n, k, w.In(), w.Out(), dst.Rows, dst.Cols))
	}
	// Rows so long that a part of them overflows the cache come in smaller parts.
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
	const run = 16 // rows of a task: a cache line of columns when a is transposed
	each(m.pool, (n+run-1)/run, func(worker, t int) {
		from, to := t*run, min((t+1)*run, n)
		if !transposed {
			for i := from; i < to; i++ {
				m.inputs[i/part].SetRow(i%part, a.Row(i))
			}
			return
		}
		s := grow(m.rows[worker], run*k)
		m.rows[worker] = s
		transpose(s, k, a.Columns(from, to))
		for i := from; i < to; i++ {
			m.inputs[i/part].SetRow(i%part, s[(i-from)*k:][:k])
		}
	})
	panels := w.Panels()
	group := max(1, min(panels, parts*panels/(m.pool.Threads()*tasksPerWorker)))
	groups := (panels + group - 1) / group
	each(m.pool, parts*groups, func(_, t int) {
		c, g := t/groups, t%groups
		w.Mul(dst.Data[c*part*dst.Stride:], dst.Stride, &m.inputs[c], g*group, min((g+1)*group, panels))
	})
}

// transpose writes the columns of a to the rows of dst, which are stride apart.
func transpose(dst []float32, stride int, a Mat) {
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

// pack packs a as w; a is out × in.
func (m *Products) pack(w *gemm.Matrix, a Mat) {
	m.packPanels(w, func(s []float32, from, to int) {
		for i := from; i < to; i++ {
			copy(s[(i-from)*a.Cols:], a.Row(i))
		}
	})
}

// packTransposed packs the transpose of a as w; a is in × out.
func (m *Products) packTransposed(w *gemm.Matrix, a Mat) {
	m.packPanels(w, func(s []float32, from, to int) { transpose(s, a.Rows, a.Columns(from, to)) })
}

// packPanels packs w panel by panel; fill writes rows [from, to) of the operand.
func (m *Products) packPanels(w *gemm.Matrix, fill func(s []float32, from, to int)) {
	k, size := w.In(), 4
	if w.Type() == gemm.BF16 {
		size = 2
	}
	if n := w.Out() * k * size; len(m.bytes) < n {
		m.bytes = make([]byte, n)
	}
	each(m.pool, w.Panels(), func(worker, p int) {
		from, to := p*gemm.Panel, min((p+1)*gemm.Panel, w.Out())
		s := grow(m.rows[worker], gemm.Panel*k)
		m.rows[worker] = s
		fill(s, from, to)
		encode(m.bytes[from*k*size:], s[:(to-from)*k], size)
		w.PackPanels(m.bytes, p, p+1)
	})
}

// encode writes s in the file encoding of f32 or bf16, little endian.
func encode(b []byte, s []float32, size int) {
	if size == 4 {
		for i, v := range s {
			u := math.Float32bits(v)
			d := b[i*4 : i*4+4 : i*4+4]
			d[0], d[1], d[2], d[3] = byte(u), byte(u>>8), byte(u>>16), byte(u>>24)
		}
		return
	}
	for i, v := range s {
		u := num.ToBF16(v)
		d := b[i*2 : i*2+2 : i*2+2]
		d[0], d[1] = byte(u), byte(u>>8)
	}
}
