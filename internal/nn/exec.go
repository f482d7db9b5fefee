package nn

import (
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// Exec runs the operations of a pass on a pool of workers. It owns the scratch memory they need, so
// in steady state a pass allocates nothing. Only one goroutine may use an Exec at a time.
type Exec struct {
	pool    *par.Pool
	plan    plan
	scratch []workerScratch
	grown   scratchSizes // of each worker's
	records Recorder     // nil when serving

	expertsRead int

	kept []float32 // attention: results of ranges, kept between phases, of all planned layers
}

// inputTypes is the number of types in which products read their rows.
const inputTypes = int(gemm.NumTypes)

// workerScratch is the memory of one worker.
type workerScratch struct {
	row     []float32 // a row on its way into a product
	queries []float32 // attention: a block of queries, their scores, their outputs of one range and of all
	scores  []float32
	gather  []float32
	out     []float32
	folded  []float32
	tops    []float32 // of the outputs, the largest scores and the sums of exponentials
	totals  []float32
	weights []float32     // of results being folded
	inputs  inputs        // rows on their way into the products of a strip
	blocks  []attendBlock // of the rows of a strip
	pieces  []attendPiece
	pages   []int32       // that a block sees
	seen    []bool        // of a page, all false between blocks
	column  []int32       // of a page that a block sees, where its scores are
	rounded [2]gemm.Input // queries and weights in bf16, or queries in blocks of int8
	scaled  []float32     // weights times the scales of values of Q8_0
	scales  []byte        // those scales
	wide    []byte        // values of Q8_0 in bf16
	latent  page          // a page of values made from its keys
	blind   page          // a page of values, without those of rows that a row does not see
	sums    []float32     // results of a product that will be added to others
	next    gemm.Place    // the weights that the last product prefetched for the next
	_       [128]byte     // keeps the cache lines of other workers away

	products gemm.Scratch
	outer    outerScratch
	mamba1   mamba1Scratch
}

// scratchSizes are the lengths of a workerScratch, and of the results kept between phases.
type scratchSizes struct{ row, queries, results, scores, gather, slots, sums, kept int }

// grow gives the workers' scratch, and the kept results, at least the given sizes. Both only grow:
// operations that are planned but have not run yet rely on the lengths that they asked for. The
// scratch is rarely touched from outside the workers, which would have to fetch it back.
func (e *Exec) grow(n scratchSizes) {
	g := &e.grown
	if n.kept > g.kept {
		g.kept = n.kept
		e.kept = grow(e.kept, g.kept)
	}
	if n.row <= g.row && n.queries <= g.queries && n.results <= g.results && n.scores <= g.scores &&
		n.gather <= g.gather && n.slots <= g.slots && n.sums <= g.sums {
		return
	}
	g.row = max(g.row, n.row)
	g.queries = max(g.queries, n.queries)
	g.results = max(g.results, n.results)
	g.scores = max(g.scores, n.scores+n.scores/4)
	g.gather = max(g.gather, n.gather)
	g.slots = max(g.slots, n.slots+n.slots/4)
	g.sums = max(g.sums, n.sums)
	for w := range e.scratch {
		s := &e.scratch[w]
		s.row, s.queries = grow(s.row, g.row), grow(s.queries, g.results)
		s.out, s.folded = grow(s.out, g.results), grow(s.folded, g.results)
		s.tops, s.totals = grow(s.tops, 2*g.queries), grow(s.totals, 2*g.queries)
		s.weights = grow(s.weights, 2*g.queries)
		s.scores = grow(s.scores, g.scores)
		s.gather = grow(s.gather, g.gather)
		s.sums = grow(s.sums, g.sums)
		s.pages, s.seen = grow(s.pages, pagesFor(g.slots)), grow(s.seen, pagesFor(g.slots))
		s.column = grow(s.column, pagesFor(g.slots))
	}
}

// NewExec returns an Exec on the given workers.
func NewExec(pool *par.Pool) *Exec {
	return &Exec{pool: pool, scratch: make([]workerScratch, pool.Threads())}
}

// Pool is the workers.
func (e *Exec) Pool() *par.Pool { return e.pool }

// Threads is the number of workers.
func (e *Exec) Threads() int { return e.pool.Threads() }

// Add computes x += y: the residual stream takes in a block's output.
func (e *Exec) Add(x, y Mat) {
	e.add(x, y, None)
}

// AddSiLU computes x += y·σ(y).
func (e *Exec) AddSiLU(x, y Mat) {
	e.add(x, y, SiLU)
}

func (e *Exec) add(x, y Mat, act Activation) {
	if e.records != nil {
		e.records.Add(x, y, act)
	}
	j := e.plan.adds.next(&e.plan)
	*j = addJob{x, y, act}
	e.OwnRows(x.Rows, x.Cols, j)
}

// addJob adds rows of y, or of SiLU of y.
type addJob struct {
	x, y Mat
	act  Activation
}

func (j *addJob) Do(_, i int) {
	x, y := j.x.Row(i), j.y.Row(i)
	if j.act == None {
		simd.Add(x, y)
		return
	}
	var act [256]float32
	for len(y) > 0 {
		n := min(len(y), len(act))
		for i := range n {
			act[i] = 1
		}
		simd.SiLUMul(act[:n], y[:n], act[:n])
		simd.Add(x[:n], act[:n])
		x, y = x[n:], y[n:]
	}
}

// grow returns s with at least n elements; contents are undefined. A slice that grows is given room to grow again.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
