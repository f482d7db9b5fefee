package nn

import "github.com/grovellm/grove/internal/kernels/par"

// plan is the work queued on an Exec: the phases of a region and their jobs. Each operation adds
// phases to it. They run at once or, between Hold and Release, together with those of neighbouring
// operations: in a small network, forks and joins cost more than the products do.
type plan struct {
	phases []par.Phase
	used   []*int     // of the slots in use
	held   int        // Holds that are not yet released
	last   *linearJob // the last product planned

	open *strip // a strip that can take more operations, if nothing was planned since

	linears  slots[linearJob]
	stores   slots[storeJob]
	attends  slots[attendJob]
	blocks   slots[blockJob]
	adds     slots[addJob]
	norms    slots[normJob]
	embeds   slots[embedJob]
	gathers  slots[gatherJob]
	strips   slots[strip]
	products slots[productJob]
	experts  slots[expertJob]
	mixes    slots[mixJob]
	cells    slots[cellJob]
	scales   slots[scaleJob]
	inputs   slots[perLayerJob]
	streams  slots[streamJob]

	convolves  slots[convolveJob]
	gates      slots[gateJob]
	deltas     slots[deltaJob]
	mambas     slots[mambaJob]
	mamba1s    slots[mamba1Job]
	kimiDeltas slots[kimiDeltaJob]
	queries    slots[queriesJob]
	widths     slots[widthJob]
	sigmoids   slots[sigmoidJob]
	latents    slots[latentJob]
	heads      slots[headJob]
	rowGates   slots[rowGateJob]

	blockConvolutions slots[blockConvolveJob]
}

// slots are jobs that are reused in the next region.
type slots[T any] struct {
	all  []*T
	used int
}

func (s *slots[T]) next(p *plan) *T {
	if s.used == 0 {
		p.used = append(p.used, &s.used)
	}
	if s.used == len(s.all) {
		s.all = append(s.all, new(T))
	}
	s.used++
	return s.all[s.used-1]
}

// phase adds a phase.
func (p *plan) phase(tasks int, j par.Job) {
	p.phases = append(p.phases, par.Phase{Tasks: tasks, Job: j})
}

// product adds the phase of a product.
func (p *plan) product(j *linearJob) {
	if p.last != nil {
		p.last.then = j
	}
	p.last = j
	p.phase(j.tasks(), j)
}

// take empties the plan. Its result is valid until the next phase is added.
func (p *plan) take() []par.Phase {
	phases := p.phases
	p.phases = phases[:0]
	p.last = nil
	p.open = nil
	for _, n := range p.used {
		*n = 0
	}
	p.used = p.used[:0]
	return phases
}

// Hold defers the following operations until its Release. Their results are not available before
// then; one operation's result for a row may be the input of another.
func (e *Exec) Hold() { e.plan.held++ }

// Planned returns the work deferred since a Hold, which it ends, as phases for others to run. They
// are valid until the next operation.
func (e *Exec) Planned() []par.Phase {
	e.plan.held--
	return e.plan.take()
}

// Follow adds phases that another Exec planned to the deferred ones.
func (e *Exec) Follow(phases []par.Phase) { e.plan.phases = append(e.plan.phases, phases...) }

// Release runs the deferred operations, unless another Hold is still open.
func (e *Exec) Release() {
	e.plan.held--
	e.run()
}

// run runs the plan, unless more is to come. A Recorder needs each operation finished before the next.
func (e *Exec) run() {
	if e.plan.held > 0 && e.records == nil || len(e.plan.phases) == 0 {
		return
	}
	e.pool.RunPhases(e.plan.take())
}

// smallWork is the number of elements below which sharing row-wise work among workers
// costs more than doing it here (a region costs a few µs; a core does ~10 elements a ns).
const smallWork = 16 << 10

// share plans a phase with work on that many elements, or does it here if there are few and no other phase is planned.
func (e *Exec) share(tasks, elements int, j par.Job) {
	if elements >= smallWork || len(e.plan.phases) > 0 || e.plan.held > 0 && e.records == nil {
		e.plan.phase(tasks, j)
		return
	}
	for t := range tasks {
		j.Do(0, t)
	}
	e.plan.take()
}

// Phase makes j do tasks 0 to n-1 once everything planned before is done.
func (e *Exec) Phase(n int, j par.Job) {
	e.plan.phase(n, j)
	e.run()
}

// PerRow makes j do tasks 0 to n-1, each with work on about cols elements, row by row after an operation.
func (e *Exec) PerRow(n, cols int, j par.Job) {
	e.perRow(n, cols, j, false)
	e.run()
}

// OwnRows is PerRow where task i touches only row i of the data that neighbouring operations read and write.
func (e *Exec) OwnRows(n, cols int, j par.Job) {
	e.perRow(n, cols, j, true)
	e.run()
}

// perRow plans j over n rows of cols elements each, a few rows to a task.
func (e *Exec) perRow(n, cols int, j par.Job, own bool) {
	b := e.plan.blocks.next(&e.plan)
	*b = blockJob{j, n, max(1, n/(e.Threads()*4)), own}
	if n > 0 {
		if s := e.plan.openStrip(n); own && s != nil {
			s.ops = append(s.ops, b)
			return
		}
		e.share((n+b.size-1)/b.size, n*cols, b)
	}
}

// blockJob makes tasks of several rows each from a job with one row per task.
type blockJob struct {
	row     par.Job
	n, size int
	own     bool // a task touches only its own row
}

func (b *blockJob) Do(worker, task int) {
	for i := task * b.size; i < min((task+1)*b.size, b.n); i++ {
		b.row.Do(worker, i)
	}
}
