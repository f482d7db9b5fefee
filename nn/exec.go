package nn

import (
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/simd"
)

// Exec runs the operations of a pass on a pool of workers. It owns the scratch they need,
// so that in steady state a pass allocates nothing. One goroutine uses an Exec at a time.
type Exec struct {
	pool    *par.Pool
	plan    plan
	scratch []workerScratch
	grown   [4]int // the lengths of each worker's: row, queries and out, scores, gather
	tape    *Tape  // nil when serving

	logits, teacher Buffer // of a part of a loss without a tape

	listJob listJob
	rider   Rider // work that regions take along; nil: none
}

// inputTypes is the number of types that products read their rows in.
const inputTypes = int(gemm.Q8_0) + 1

// workerScratch is memory of one worker.
type workerScratch struct {
	row     []float32 // a row on its way into a product
	queries []float32 // attention: a block of queries, their scores, their outputs
	scores  []float32
	gather  []float32
	out     []float32
	next    gemm.Place // the weights that the last product fetched for the next
	_       [128]byte  // nobody else's cache lines
}

// grow makes the workers' scratch as large as that. It is looked at rarely from outside the workers, which
// would have to fetch it back.
func (e *Exec) grow(row, queries, scores, gather int) {
	if row <= e.grown[0] && queries <= e.grown[1] && scores <= e.grown[2] && gather <= e.grown[3] {
		return
	}
	for w := range e.scratch {
		s := &e.scratch[w]
		s.row = grow(s.row, row)
		s.queries, s.out = grow(s.queries, queries), grow(s.out, queries)
		s.scores, s.gather = grow(s.scores, scores), grow(s.gather, gather)
		s.row, s.queries, s.out = s.row[:cap(s.row)], s.queries[:cap(s.queries)], s.out[:cap(s.out)]
		s.scores, s.gather = s.scores[:cap(s.scores)], s.gather[:cap(s.gather)]
		e.grown = [4]int{len(s.row), min(len(s.queries), len(s.out)), len(s.scores), len(s.gather)}
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

// Add computes x += y, the residual stream taking in a block's output.
func (e *Exec) Add(x, y Mat) {
	if e.tape != nil {
		e.tape.record(&addRecord{x, y})
	}
	e.add(x, y)
}

func (e *Exec) add(x, y Mat) {
	j := e.plan.adds.next()
	*j = addJob{x, y}
	e.perRow(x.Rows, x.Cols, j)
	e.run()
}

type addJob struct{ x, y Mat }

func (j *addJob) Do(_, i int) { simd.Add(j.x.Row(i), j.y.Row(i)) }

// grow returns s with at least n elements; contents are undefined. What grows once grows again, so it gets room to.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n, n+n/4)
	}
	return s[:n]
}
