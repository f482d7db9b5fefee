package autograd

import (
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// Tape records the operations of an Exec so that the gradient of a loss can be taken back through them.
// While it is attached, every matrix of [nn.Exec.Mat] is fresh memory with room for its gradient, and
// an operation that overwrites its input first saves the data that its gradient needs.
//
//	tape.Reset()             // forget the last step; its memory is used again
//	... operations of the Exec, ending in tape.CrossEntropy ...
//	tape.Backward()          // adds to the Grad of every Param
//
// Gradients are summed in a fixed order: the bits are the same for any number of workers.
type Tape struct {
	exec     *nn.Exec
	params   *Params
	products *Products
	records  []record
	arena    arena
	frozen   map[*gemm.Matrix]*gemm.Matrix // transposes of matrices that are not trained
	stored   map[cached][]*stored          // rows in a cache's layer, in the order of their passes
	attached bool

	logits, teacher nn.Buffer // of one part of a loss, while detached
}

// record is a completed operation, which can take the gradient from its outputs to its inputs.
type record interface{ backward(t *Tape) }

// NewTape attaches a tape to e, whose trained tensors are those in p.
func NewTape(e *nn.Exec, p *Params) *Tape {
	t := &Tape{exec: e, params: p, products: NewProducts(e.Pool(), p.kind), frozen: map[*gemm.Matrix]*gemm.Matrix{},
		stored: map[cached][]*stored{}}
	t.Attach()
	return t
}

// Detach lets the Exec run without recording, until Attach.
func (t *Tape) Detach() {
	t.attached = false
	t.exec.Record(nil)
}

// Attach makes the Exec record on t.
func (t *Tape) Attach() {
	t.attached = true
	t.exec.Record(recorder{t})
}

// recorder is a tape as a Recorder of an Exec. Its methods are next to the gradients of their operations.
type recorder struct{ *Tape }

var _ nn.Recorder = recorder{}

// Grad returns the gradient of the loss with respect to m, which [Tape.Backward] fills; ok is false
// for a matrix that no tape made.
func Grad(m nn.Mat) (g nn.Mat, ok bool) {
	return nn.Mat{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Grad}, m.Grad != nil
}

// Products multiplies on the tape's kernels.
func (t *Tape) Products() *Products { return t.products }

// Forget drops the data that the tape keeps for an untrained matrix, which is about to be packed anew.
func (t *Tape) Forget(w *gemm.Matrix) { delete(t.frozen, w) }

// Reset drops the recorded operations. Matrices made before become invalid.
func (t *Tape) Reset() {
	clear(t.records)
	t.records = t.records[:0]
	clear(t.stored)
	t.arena.reset()
}

// Backward goes back from the recorded losses, adding to the gradients of the parameters.
func (t *Tape) Backward() {
	for i := len(t.records) - 1; i >= 0; i-- {
		t.records[i].backward(t)
	}
}

func (t *Tape) record(r record) { t.records = append(t.records, r) }

// Mat returns a matrix of undefined contents with a gradient of zero.
func (t recorder) Mat(rows, cols int) nn.Mat {
	m := t.plain(rows, cols)
	m.Grad = t.arena.take(rows * cols)
	const part = 1 << 16
	each(t.pool(), (len(m.Grad)+part-1)/part, func(_, c int) { clear(m.Grad[c*part : min((c+1)*part, len(m.Grad))]) })
	return m
}

// pool returns the workers.
func (t *Tape) pool() *par.Pool { return t.exec.Pool() }

// plain returns a matrix without a gradient.
func (t *Tape) plain(rows, cols int) nn.Mat {
	return nn.Mat{Rows: rows, Cols: cols, Stride: cols, Data: t.arena.take(rows * cols)}
}

// arena hands out memory that is returned all at once. Steps of the same shape take the same memory, so
// a run allocates only in its first steps. It holds little more than the largest step took.
type arena struct {
	slabs [][]float32
	place arenaPlace
	most  int // the most elements taken at a time, since the first step
}

// arenaPlace is the next free place: a slab and the number of its used elements. taken counts all elements before it.
type arenaPlace struct{ slab, used, taken int }

const slabSize = 4 << 20 // elements

// reset takes all memory back. It replaces several slabs by one that holds everything: otherwise,
// steps that differ would each skip some slabs as too small, and add others.
func (a *arena) reset() {
	a.place = arenaPlace{}
	if len(a.slabs) > 1 {
		a.slabs = [][]float32{make([]float32, a.most+a.most/8)}
	}
}

func (a *arena) take(n int) []float32 {
	n16 := (n + 15) &^ 15
	p := &a.place
	for ; p.slab < len(a.slabs) && p.used+n16 > len(a.slabs[p.slab]); p.slab++ {
		p.used = 0
	}
	if p.slab == len(a.slabs) {
		a.slabs = append(a.slabs, make([]float32, max(n16, slabSize)))
	}
	s := a.slabs[p.slab][p.used : p.used+n : p.used+n]
	p.used += n16
	p.taken += n16
	a.most = max(a.most, p.taken)
	return s
}

// mark and release enclose the scratch of one operation.
func (a *arena) mark() arenaPlace { return a.place }

func (a *arena) release(p arenaPlace) { a.place = p }
