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
	inputs  [inputTypes]gemm.Input // the rows entering a product, as its kernels read them
	scratch []workerScratch
	tape    *Tape // nil when serving

	logits, teacher Buffer // of a part of a loss without a tape

	blockJob  blockJob
	rowJob    rowJob
	normJob   normJob
	linearJob linearJob
	listJob   listJob
	storeJob  storeJob
	attendJob attendJob

	rider   Rider // work that regions take along; nil: none
	rideJob rideJob
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
}

// NewExec returns an Exec on the given workers.
func NewExec(pool *par.Pool) *Exec {
	return &Exec{pool: pool, scratch: make([]workerScratch, pool.Threads())}
}

// Pool is the workers.
func (e *Exec) Pool() *par.Pool { return e.pool }

// Threads is the number of workers.
func (e *Exec) Threads() int { return e.pool.Threads() }

// smallWork is the number of elements below which sharing row-wise work among workers
// costs more than doing it here (a region costs a few µs; a core does ~10 elements a ns).
const smallWork = 16 << 10

// share runs the tasks of j on all workers, or here when there are few elements in all.
func (e *Exec) share(tasks, elements int, j par.Job) {
	if elements >= smallWork {
		e.pool.Run(tasks, j)
		return
	}
	for t := range tasks {
		j.Do(0, t)
	}
}

// perRow runs j over n rows of cols elements each, a few rows to a task.
func (e *Exec) perRow(n, cols int, j par.Job) {
	e.blockJob = blockJob{j, n, max(1, n/(e.Threads()*4))}
	e.share((n+e.blockJob.size-1)/e.blockJob.size, n*cols, &e.blockJob)
}

// blockJob makes tasks of several rows each out of a job of one row a task.
type blockJob struct {
	row     par.Job
	n, size int
}

func (b *blockJob) Do(worker, task int) {
	for i := task * b.size; i < min((task+1)*b.size, b.n); i++ {
		b.row.Do(worker, i)
	}
}

// Add computes x += y, the residual stream taking in a block's output.
func (e *Exec) Add(x, y Mat) {
	if e.tape != nil {
		e.tape.record(&addRecord{x, y})
	}
	e.add(x, y)
}

func (e *Exec) add(x, y Mat) {
	e.rowJob = rowJob{x: x, y: y}
	e.perRow(x.Rows, x.Cols, &e.rowJob)
}

type rowJob struct{ x, y Mat }

func (j *rowJob) Do(_, i int) { simd.Add(j.x.Row(i), j.y.Row(i)) }

// grow returns s with at least n elements; contents are undefined. What grows once grows again, so it gets room to.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n, n+n/4)
	}
	return s[:n]
}
