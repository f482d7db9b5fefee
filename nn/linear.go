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

// Linear computes every projection of the source: Dst[i] = W·source(X[i]) + b for each row i.
func (e *Exec) Linear(src Source, projs ...Proj) {
	if e.tape == nil {
		e.project(src, nil, projs)
		e.run()
		return
	}
	e.project(src, e.tape.keep(src, projs), projs)
	e.run()
	for _, p := range projs {
		if p.To.Data != nil {
			e.Add(p.To, p.Dst)
		}
	}
}

// Stage readies what Linear computes and leaves it to the caller to run: a stage of a Rider, whose Exec has no tape. One stage of an Exec is
// under way at a time.
func (e *Exec) Stage(src Source, projs ...Proj) (tasks int, j par.Job) {
	e.plan.take()
	l := e.plan.linears.next()
	l.intake.enterNow(e, src, l.ready(e, projs))
	return l.tasks(), l
}

// project plans the products of a source.
func (e *Exec) project(src Source, keep *linearRecord, projs []Proj) {
	j := e.plan.linears.next()
	j.intake.enter(e, src, j.ready(e, projs), keep)
	e.plan.product(j)
}

// projectHeads plans the products that make queries, keys and values, and stores them as they are made.
func (e *Exec) projectHeads(src Source, projs []Proj, store *storeJob) {
	j := e.plan.linears.next()
	j.intake.enter(e, src, j.ready(e, projs), nil)
	j.store = store
	e.plan.product(j)
}

// linearJob is products of one intake.
type linearJob struct {
	intake        intake
	projs         []Proj
	add           bool       // into To
	panels, chunk int        // a task is a chunk of the panels, counted through the projections one after another
	store         *storeJob  // or a head of queries, keys or values, which is stored at once
	then          *linearJob // the next of the region
}

// ready takes the projections, and says which types they use.
func (j *linearJob) ready(e *Exec, projs []Proj) (uses [inputTypes]bool) {
	j.projs = append(j.projs[:0], projs...)
	j.add, j.store, j.then = e.tape == nil, nil, nil
	j.panels = 0
	size := 0
	for _, p := range projs {
		w := p.Linear.W
		uses[w.Type()] = true
		j.panels += w.Panels()
		size += w.Bytes()
	}
	j.chunk = taskPanels(j.panels, size, projs[0].Dst.Rows, e.Threads())
	return uses
}

// taskPanels is how many panels of products make a task. Several tasks a worker even out cores that are slower or
// interrupted, and the shorter the last, the shorter the others wait for it; but each starts a new stream, whose first
// misses should not count, and of a small network a worker's whole share is too short to be parted.
func taskPanels(panels, bytes, rows, threads int) int {
	share := (panels + threads - 1) / threads
	long := max(1, taskBytes*panels/(bytes*(1+rows/8)))
	tasks := min((share+long-1)/long, mostTasks)
	return (share + tasks - 1) / tasks
}

const (
	taskBytes = 128 << 10 // of a task with few rows
	mostTasks = 32        // a worker's
)

func (j *linearJob) tasks() int {
	if j.store != nil {
		return j.store.units() * j.store.a.KVHeads
	}
	return (j.panels + j.chunk - 1) / j.chunk
}

// Do computes the t-th chunk of panels, or the t-th head.
func (j *linearJob) Do(worker, t int) {
	from, to := j.span(t)
	j.compute(worker, from, to, j.after(worker, t))
	if j.store != nil {
		j.store.unit(t, 0, j.store.f.Len())
	}
}

// span is the panels of task t.
func (j *linearJob) span(t int) (from, to int) {
	if j.store != nil {
		size := j.store.a.Dim / gemm.Panel
		from = j.store.place(t) * size
		return from, from + size
	}
	return t * j.chunk, min((t+1)*j.chunk, j.panels)
}

// after is where a worker probably goes on multiplying after task t: at the next of its share, or the first of its share of the next
// product.
func (j *linearJob) after(worker, t int) gemm.Place {
	workers := len(j.intake.e.scratch)
	if from, to := par.Share(worker, workers, j.tasks()); t < from || t >= to {
		return gemm.Place{} // another's, from the end of its share
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

func (j *linearJob) compute(worker, from, to int, next gemm.Place) {
	s := &j.intake.e.scratch[worker]
	for i := range j.projs {
		p := &j.projs[i]
		w := p.Linear.W
		n := w.Panels()
		if from < n && to > 0 {
			p0, p1 := max(from, 0), min(to, n)
			told := s.next
			if s.next = next; to > n {
				s.next = gemm.Place{M: j.projs[i+1].Linear.W}
			}
			p.run(j.intake.input(worker, w.Type()), p0, p1, told, s.next)
			if j.add {
				p.add(p0, p1)
			}
		}
		from, to = from-n, to-n
	}
}

func (p *Proj) run(x *gemm.Input, p0, p1 int, told, next gemm.Place) {
	w := p.Linear.W
	w.MulThen(p.Dst.Data, p.Dst.Stride, x, p0, p1, told, next)
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
