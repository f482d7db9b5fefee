package nn

import (
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// Linear is y = W·x + b. W is out×in, packed; Bias may be nil.
type Linear struct {
	W    *gemm.Matrix
	Bias []float32

	Scale float32 // multiplies y, if it is not 0 (Granite's multipliers)
	Cap   float32 // then y becomes Cap·tanh(y/Cap), if it is not 0 (Gemma 2's soft cap)
}

// Finish turns sums to which the bias has been added into results.
func (l *Linear) Finish(y []float32) {
	switch {
	case l.Cap != 0 && l.Scale != 0:
		softCap(y, l.Scale, l.Cap)
	case l.Cap != 0:
		softCap(y, 1, l.Cap)
	case l.Scale != 0:
		simd.Scale(y, l.Scale)
	}
}

// softCap replaces x with cap·tanh(scale·x/cap), which is cap − 2·cap/(1 + e^(2·scale·x/cap)).
func softCap(x []float32, scale, cap float32) {
	simd.Scale(x, 2*scale/cap)
	simd.Exp(x, x)
	for i, e := range x {
		x[i] = cap - 2*cap/(1+e)
	}
}

// Proj is one of several products that share their input. To, if set, takes in the results, as the residual
// stream does with Exec.Add, but while they are at hand. Dst then receives them only if a Recorder takes them.
type Proj struct {
	Linear *Linear
	Dst    Mat // n × out
	To     Mat
}

// Linear computes every projection of the source: Dst[i] = W·source(X[i]) + b for each row i.
func (e *Exec) Linear(src Source, projs ...Proj) {
	if e.records == nil {
		e.project(src, Mat{}, projs)
		e.run()
		return
	}
	e.project(src, e.records.Linear(src, slices.Clone(projs)), projs)
	e.run()
	for _, p := range projs {
		if p.To.Data != nil {
			e.Add(p.To, p.Dst)
		}
	}
}

// project plans the products of a source, whose rows kept also receives.
func (e *Exec) project(src Source, kept Mat, projs []Proj) {
	j := e.plan.linears.next(&e.plan)
	j.intake.Enter(e, src, j.ready(e, projs...), kept)
	e.plan.product(j)
}

// projectHeads plans the products that make queries, keys and values, and stores keys and values as they are made.
func (e *Exec) projectHeads(src Source, projs []Proj, store *storeJob) {
	j := e.plan.linears.next(&e.plan)
	j.intake.Enter(e, src, j.ready(e, projs...), Mat{})
	j.store = store
	j.rowParts = max(1, j.rows/headRows)
	e.plan.product(j)
}

// headRows is roughly the number of rows in a task of projectHeads: with more, one task of four
// panels would be too long to even out.
const headRows = 32

// linearJob is products of one intake.
type linearJob struct {
	intake Intake
	projs  []Proj
	add    bool // results are added to To
	rows   int

	// A task is a chunk of the panels, counted through the projections one after another. Where
	// results are processed at once, it is a part of the rows and the panels of a head, or of as
	// many columns of an MLP's inner rows as are quantised together.
	panels, chunk int
	store         *storeJob
	inner         innerRows // if it has units
	rowParts      int

	then *linearJob // the next job of the region
}

// ready takes the projections, and returns which types they use.
func (j *linearJob) ready(e *Exec, projs ...Proj) (uses [inputTypes]bool) {
	j.projs = append(j.projs[:0], projs...)
	j.add = e.records == nil
	j.store = nil
	j.inner = innerRows{}
	j.then = nil
	j.rows = projs[0].Dst.Rows
	j.rowParts = 1
	j.panels = 0
	size := 0
	for _, p := range projs {
		w := p.Linear.W
		uses[w.Type().Activations()] = true
		j.panels += w.Panels()
		size += w.Bytes()
	}
	j.chunk = taskPanels(j.panels, size, j.rows, e.Threads())
	if j.add && projs[0].To.Data != nil {
		e.grow(scratchSizes{sums: j.rows * j.chunk * gemm.Panel})
	}
	return uses
}

// taskPanels returns the number of panels of products in a task. Several tasks per worker even out cores
// that are slower or interrupted, and the shorter the last task, the shorter the others wait for it. But
// each task starts a new stream, whose first misses should not count, and in a small network a worker's
// whole share is too short to split. Tasks are slightly longer where that evens out the shares.
func taskPanels(panels, bytes, rows, threads int) int {
	share := (panels + threads - 1) / threads
	long := max(1, taskBytes*panels/(bytes*(1+rows/8)))
	tasks := min((share+long-1)/long, mostTasks)
	chunk := (share + tasks - 1) / tasks
	best, least := chunk, longestShare(panels, chunk, threads)
	for c := chunk + 1; least > share && c <= min(share, 2*chunk); c++ {
		if n := longestShare(panels, c, threads); n < least {
			best, least = c, n
		}
	}
	return best
}

// longestShare returns how many panels the busiest worker multiplies, with tasks of chunk panels.
func longestShare(panels, chunk, threads int) int {
	tasks := (panels + chunk - 1) / chunk
	return (tasks + threads - 1) / threads * chunk
}

const (
	taskBytes = 128 << 10 // of a task with few rows
	mostTasks = 32        // per worker
)

func (j *linearJob) tasks() int {
	switch {
	case j.store != nil:
		return j.store.units() * j.store.a.KVHeads * j.rowParts
	case j.inner.units > 0:
		return j.inner.units * j.rowParts
	}
	return (j.panels + j.chunk - 1) / j.chunk
}

// Do computes the t-th chunk of panels, or the t-th head.
func (j *linearJob) Do(worker, t int) {
	part := t % j.rowParts
	r0, r1 := j.rows*part/j.rowParts, j.rows*(part+1)/j.rowParts
	from, to := j.span(t)
	if j.inner.units > 0 {
		j.computeInner(worker, r0, r1, from, to, j.after(worker, t))
		return
	}
	j.compute(worker, r0, r1, from, to, j.after(worker, t))
	if j.store != nil {
		j.store.unit(t/j.rowParts, r0, r1)
	}
}

// span returns the panels of task t; for inner rows, those of each projection.
func (j *linearJob) span(t int) (from, to int) {
	switch {
	case j.store != nil:
		size := j.store.a.Dim / gemm.Panel
		from = j.store.place(t/j.rowParts) * size
		return from, from + size
	case j.inner.units > 0:
		from = t / j.rowParts * j.inner.panels
		return from, min(from+j.inner.panels, j.projs[0].Linear.W.Panels())
	}
	return t * j.chunk, min((t+1)*j.chunk, j.panels)
}

// after returns where a worker probably continues after task t: at the next task of its share, or
// at the first one of its share of the next product.
func (j *linearJob) after(worker, t int) gemm.Place {
	workers := len(j.intake.e.scratch)
	if from, to := par.Share(worker, workers, j.tasks()); t < from || t >= to {
		return gemm.Place{} // a task of another worker, from the end of its share
	} else if t+1 < to {
		return j.place(t + 1)
	}
	if j.then == nil {
		return gemm.Place{}
	}
	if from, to := par.Share(worker, workers, j.then.tasks()); from < to {
		return j.then.place(from)
	}
	return gemm.Place{}
}

// place is where task t begins.
func (j *linearJob) place(t int) gemm.Place {
	from, _ := j.span(t)
	for i := range j.projs {
		w := j.projs[i].Linear.W
		if from < w.Panels() {
			return gemm.Place{M: w, Panel: from}
		}
		from -= w.Panels()
	}
	return gemm.Place{}
}

// compute multiplies rows [r0, r1) by panels [from, to) of the projections.
func (j *linearJob) compute(worker, r0, r1, from, to int, next gemm.Place) {
	s := &j.intake.e.scratch[worker]
	for i := range j.projs {
		p := &j.projs[i]
		w := p.Linear.W
		n := w.Panels()
		if from < n && to > 0 {
			a := gemm.Part{X: j.intake.Input(worker, w.Type()), From: r0, To: r1, P0: max(from, 0), P1: min(to, n),
				Fetched: s.next, Next: next, Scratch: &s.products}
			if to > n {
				a.Next = gemm.Place{M: j.projs[i+1].Linear.W}
			}
			s.next = a.Next
			p.run(&a, j.add, s.sums)
		}
		from, to = from-n, to-n
	}
}

// run computes a part. Results that are added to others are held in sums in the meantime.
func (p *Proj) run(a *gemm.Part, add bool, sums []float32) {
	o0, o1 := a.P0*gemm.Panel, min(a.P1*gemm.Panel, p.Linear.W.Out())
	dst := p.Dst.Columns(o0, o1).Slice(a.From, a.To)
	add = add && p.To.Data != nil
	if add {
		dst = partMat(a, o1-o0, sums)
	}
	p.Linear.part(a, dst)
	if add {
		to := p.To.Columns(o0, o1).Slice(a.From, a.To)
		for i := range dst.Rows {
			simd.Add(to.Row(i), dst.Row(i))
		}
	}
}

// partMat returns a matrix for a part with the given number of columns.
func partMat(a *gemm.Part, cols int, data []float32) Mat {
	return Mat{Rows: a.To - a.From, Cols: cols, Stride: (a.P1 - a.P0) * gemm.Panel, Data: data}
}

// part computes a part into dst.
func (l *Linear) part(a *gemm.Part, dst Mat) {
	a.Dst = dst.Data
	a.Stride = dst.Stride
	a.Base = a.P0
	l.W.MulPart(*a)
	if l.Bias != nil {
		b := l.Bias[a.P0*gemm.Panel:][:dst.Cols]
		for i := range dst.Rows {
			simd.Add(dst.Row(i), b)
		}
	}
	if l.Scale != 0 || l.Cap != 0 {
		for i := range dst.Rows {
			l.Finish(dst.Row(i))
		}
	}
}
