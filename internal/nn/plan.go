package nn

import "github.com/grovellm/grove/internal/kernels/par"

// plan is what an Exec is to do: the phases of a region and their jobs. An operation adds phases to it. They
// run at once, or, between Hold and Release, together with those of the operations around: forks and joins cost a small
// network more than its products do.
type plan struct {
	phases []par.Phase
	held   int        // Holds without their Release
	last   *linearJob // the last product planned

	open *strip // a strip that more may come to, if nothing was planned since

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

	convolves slots[convolveJob]
	gates     slots[gateJob]
	deltas    slots[deltaJob]
	mambas    slots[mambaJob]
	queries   slots[queriesJob]
	sigmoids  slots[sigmoidJob]
	latents   slots[latentJob]
	heads     slots[headJob]
	rowGates  slots[rowGateJob]

	blockConvolutions slots[blockConvolveJob]
}

// slots are jobs that are used again in the next region.
type slots[T any] struct {
	all  []*T
	used int
}

func (s *slots[T]) next() *T {
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

// take empties the plan. What it gives is good until the next phase is added.
func (p *plan) take() []par.Phase {
	phases := p.phases
	p.phases = phases[:0]
	p.last = nil
	p.open = nil
	p.strips.used, p.products.used = 0, 0
	p.linears.used = 0
	p.stores.used = 0
	p.attends.used = 0
	p.embeds.used = 0
	p.gathers.used = 0
	p.experts.used = 0
	p.mixes.used = 0
	p.blocks.used = 0
	p.adds.used = 0
	p.norms.used = 0
	p.cells.used = 0
	p.scales.used = 0
	p.inputs.used = 0
	p.convolves.used = 0
	p.gates.used = 0
	p.deltas.used = 0
	p.mambas.used = 0
	p.queries.used = 0
	p.sigmoids.used = 0
	p.latents.used, p.heads.used = 0, 0
	p.rowGates.used = 0
	p.blockConvolutions.used = 0
	return phases
}

// Hold puts off what follows until its Release. Results of operations between are not there before; a row's of one
// operation may be the input of another.
func (e *Exec) Hold() { e.plan.held++ }

// Planned hands out what was put off since a Hold, which it ends, as phases for others to run. They
// are good until the next operation.
func (e *Exec) Planned() []par.Phase {
	e.plan.held--
	return e.plan.take()
}

// Follow adds phases that another Exec planned to what is put off.
func (e *Exec) Follow(phases []par.Phase) { e.plan.phases = append(e.plan.phases, phases...) }

// Release does what was put off, unless another Hold is without its Release.
func (e *Exec) Release() {
	e.plan.held--
	e.run()
}

// run does what is planned, unless more is to come. A Recorder wants each operation done before the next.
func (e *Exec) run() {
	if e.plan.held > 0 && e.records == nil || len(e.plan.phases) == 0 {
		return
	}
	e.pool.RunPhases(e.plan.take())
}

// smallWork is the number of elements below which sharing row-wise work among workers
// costs more than doing it here (a region costs a few µs; a core does ~10 elements a ns).
const smallWork = 16 << 10

// share plans a phase of so many elements' work, or does it here when they are few and no other phase is about it.
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

// Phase has j do tasks 0 to n-1 once what is planned before is done.
func (e *Exec) Phase(n int, j par.Job) {
	e.plan.phase(n, j)
	e.run()
}

// PerRow has j do tasks 0 to n-1, of about cols elements' work each: what follows an operation row by row.
func (e *Exec) PerRow(n, cols int, j par.Job) {
	e.perRow(n, cols, j, false)
	e.run()
}

// OwnRows is PerRow where task i has to do with row i alone of what operations about it read and write.
func (e *Exec) OwnRows(n, cols int, j par.Job) {
	e.perRow(n, cols, j, true)
	e.run()
}

// perRow plans j over n rows of cols elements each, a few rows to a task.
func (e *Exec) perRow(n, cols int, j par.Job, own bool) {
	b := e.plan.blocks.next()
	*b = blockJob{j, n, max(1, n/(e.Threads()*4)), own}
	if n > 0 {
		if s := e.plan.openStrip(n); own && s != nil {
			s.ops = append(s.ops, b)
			return
		}
		e.share((n+b.size-1)/b.size, n*cols, b)
	}
}

// blockJob makes tasks of several rows each out of a job of one row a task.
type blockJob struct {
	row     par.Job
	n, size int
	own     bool // a task has to do with its row alone
}

func (b *blockJob) Do(worker, task int) {
	for i := task * b.size; i < min((task+1)*b.size, b.n); i++ {
		b.row.Do(worker, i)
	}
}
