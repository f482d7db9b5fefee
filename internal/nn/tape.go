package nn

import "github.com/grovellm/grove/internal/kernels/gemm"

// Tape records the operations of an Exec so that the gradient of a loss can be walked back
// through them. While an Exec has a tape, every [Exec.Mat] is fresh memory with room for its
// gradient, and an operation that overwrites its input first keeps what its gradient needs.
//
//	tape.Reset()             // forget the last step; its memory is used again
//	... operations of the Exec, ending in Exec.CrossEntropy ...
//	tape.Backward()          // adds to the Grad of every Param
//
// Gradients are sums in a fixed order: the same bits on any number of workers.
type Tape struct {
	exec     *Exec
	params   *Params
	products *Products
	records  []record
	arena    arena
	frozen   map[*gemm.Matrix]*gemm.Matrix // transposes of matrices that are not trained
	stored   map[cached][]*stored          // rows in a cache's layer, in the order of their passes
}

// record is an operation done, which can take the gradient from its outputs to its inputs.
type record interface{ backward(t *Tape) }

// NewTape attaches a tape to e, whose trained tensors are those of p.
func NewTape(e *Exec, p *Params) *Tape {
	t := &Tape{exec: e, params: p, products: NewProducts(e.pool, p.kind), frozen: map[*gemm.Matrix]*gemm.Matrix{}, stored: map[cached][]*stored{}}
	e.tape = t
	return t
}

// Detach lets the Exec run without recording; Attach goes on.
func (t *Tape) Detach() { t.exec.tape = nil }

// Attach makes the Exec record on t.
func (t *Tape) Attach() { t.exec.tape = t }

// Products multiplies on the tape's kernels.
func (t *Tape) Products() *Products { return t.products }

// Reset forgets what was recorded. Matrices made before are invalid.
func (t *Tape) Reset() {
	clear(t.records)
	t.records = t.records[:0]
	clear(t.stored)
	t.arena.reset()
}

// Backward walks back from the losses recorded, adding to the gradients of the parameters.
func (t *Tape) Backward() {
	for i := len(t.records) - 1; i >= 0; i-- {
		t.records[i].backward(t)
	}
}

func (t *Tape) record(r record) { t.records = append(t.records, r) }

// mat returns a matrix of undefined contents with a gradient of zero.
func (t *Tape) mat(rows, cols int) Mat {
	m := t.plain(rows, cols)
	m.grad = t.arena.take(rows * cols)
	const part = 1 << 16
	each(t.exec.pool, (len(m.grad)+part-1)/part, func(_, c int) { clear(m.grad[c*part : min((c+1)*part, len(m.grad))]) })
	return m
}

// plain returns a matrix without a gradient.
func (t *Tape) plain(rows, cols int) Mat {
	return Mat{Rows: rows, Cols: cols, Stride: cols, Data: t.arena.take(rows * cols)}
}

// Mat returns a matrix for the output of an operation: over the buffer, or under a tape fresh
// memory, since the gradient needs what the buffer held before.
func (e *Exec) Mat(b *Buffer, rows, cols int) Mat {
	if e.tape != nil {
		return e.tape.mat(rows, cols)
	}
	return b.Mat(rows, cols)
}

// arena hands out memory that is given back all at once. Steps of the same shape take the
// same memory, so that a run allocates in its first step alone.
type arena struct {
	slabs [][]float32
	slab  int // the one being handed out
	used  int // of it
}

const slabSize = 4 << 20 // elements

func (a *arena) reset() { a.slab, a.used = 0, 0 }

func (a *arena) take(n int) []float32 {
	n16 := (n + 15) &^ 15
	for a.slab < len(a.slabs) && a.used+n16 > len(a.slabs[a.slab]) {
		a.slab, a.used = a.slab+1, 0
	}
	if a.slab == len(a.slabs) {
		a.slabs = append(a.slabs, make([]float32, max(n16, slabSize)))
	}
	s := a.slabs[a.slab][a.used : a.used+n : a.used+n]
	a.used += n16
	return s
}

// mark and release bracket scratch of one operation.
func (a *arena) mark() (slab, used int) { return a.slab, a.used }

func (a *arena) release(slab, used int) { a.slab, a.used = slab, used }

// addRecord is x += y, or dy += dx backwards; x's own gradient stays as it is. With SiLU it is x += y·σ(y).
type addRecord struct {
	x, y Mat
	act  Activation
}

func (r *addRecord) backward(t *Tape) {
	dx, ok := r.x.Grad()
	dy, ok2 := r.y.Grad()
	switch {
	case !ok || !ok2:
	case r.act == SiLU:
		each(t.exec.pool, (dy.Rows+gradRows-1)/gradRows, func(_, c int) {
			for i := c * gradRows; i < min((c+1)*gradRows, dy.Rows); i++ {
				siluBackward(dy.Row(i), dx.Row(i), r.y.Row(i))
			}
		})
	default:
		t.exec.add(dy, dx)
	}
}

// Forget lets go of what the tape keeps of a matrix that is not trained, which is to be packed anew.
func (t *Tape) Forget(w *gemm.Matrix) { delete(t.frozen, w) }
