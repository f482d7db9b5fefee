package nn

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// Mamba1 is a layer of Jamba, which is Mamba (arXiv 2312.00752) with norms. Each channel c of the width has States
// numbers, which decay at rates of their own. With Δ = softplus(Step·dt), a number for each channel,
//
//	S[n,c] ← e^(A[n,c]·Δ[c])·S[n,c] + B[n]·Δ[c]·x[c]    y[c] = (Σ_n C[n]·S[n,c] + Skip[c]·x[c])·SiLU(z[c])
//
// The rows of In are x and z. After a convolution of x, and SiLU, those of X are dt, B and C, which have a norm each.
//
// Since decays differ by channel and number, a row's result is not a product with a page's first state, as in Mamba-2.
// A state is carried from row to row along each path instead, starting with the page's first one, or with the latest
// that the cache has on the page.
type Mamba1 struct {
	In, X, Step Linear
	Conv        Convolution
	A, Skip     []float32 // A: States × width
	States      int

	StepNorm, BNorm, CNorm Norm
}

func (d *Mamba1) width() int { return len(d.Skip) }
func (d *Mamba1) rank() int  { return d.Step.W.In() }

// A row of a cache is the convolution's inputs, Δ, Δ·x and B; a state is S and the convolution's tail.
func (d *Mamba1) Shape() *RecurrentShape {
	return &RecurrentShape{Row: 3*d.width() + d.States, State: len(d.A) + d.Conv.tail(), Carried: true}
}

func (d *Mamba1) Bytes() int { return d.In.W.Bytes() + d.X.W.Bytes() + d.Step.W.Bytes() }

func (d *Mamba1) mix(e *Exec, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	n, b := src.X.Rows, &m.delta
	width, rank := d.width(), d.rank()
	in, mixed := e.Mat(&b.in, n, 2*width), e.Mat(&b.mixed, n, width)
	low, steps := e.Mat(&b.both, n, rank+2*d.States), e.Mat(&b.gates, n, width)
	y := e.Mat(&b.out, n, width)
	e.Linear(src, Proj{Linear: &d.In, Dst: in})
	j := e.plan.mamba1s.next(&e.plan)
	*j = mamba1Job{d: d, e: e, layer: layer, f: f, walk: f.walk(), mixed: mixed, steps: steps, y: y,
		z: in.Columns(width, 2*width), low: low.Columns(rank, rank+2*d.States)}
	e.convolve(convolveJob{conv: &d.Conv, layer: layer, f: f, x: in.Columns(0, width), y: mixed, state: len(d.A), next: j})
	e.Linear(Source{X: mixed}, Proj{Linear: &d.X, Dst: low})
	e.Linear(Source{X: low.Columns(0, rank), Norm: &d.StepNorm}, Proj{Linear: &d.Step, Dst: steps})
	e.perRow(n, 2*width, (*mamba1Inputs)(j), false)
	e.plan.phase(len(f.segs)*j.parts(), j)
	e.OwnRows(n, width, (*mamba1Output)(j))
	e.Linear(Source{X: y}, out)
}

// mamba1Job computes the rows of a pass; a task is some channels in one sequence.
type mamba1Job struct {
	d     *Mamba1
	e     *Exec
	layer int
	f     *Forest
	walk  *walk

	mixed, z, steps, y Mat
	low                Mat // B and C
}

func (j *mamba1Job) rowDone(_, i int) { silu(j.mixed.Row(i)) }

// mamba1Inputs stores what row i adds to states.
type mamba1Inputs mamba1Job

func (j *mamba1Inputs) Do(_, i int) {
	d, g := j.d, j.f.segmentOf(i)
	width := d.width()
	row := g.Cache.row(j.layer, g.slot(i))[width:]
	b, c := j.low.Row(i)[:d.States], j.low.Row(i)[d.States:]
	d.BNorm.apply(row[2*width:], b)
	d.CNorm.apply(c, c)
	for k, x := range j.mixed.Row(i) {
		step := softplus(j.steps.Row(i)[k])
		row[k] = step
		row[width+k] = step * x
	}
}

// mamba1Part is how many channels a task has: their numbers fit in the first-level cache.
const mamba1Part = 128

func (j *mamba1Job) parts() int { return (j.d.width() + mamba1Part - 1) / mamba1Part }

// mamba1Scratch is memory of a worker: the states of a walk, those after rows of a page, and which of these are made.
type mamba1Scratch struct {
	states, rows, decays []float32
	made                 []bool
}

// mamba1Task is a task with its channels, from at on.
type mamba1Task struct {
	*mamba1Job
	s         *mamba1Scratch
	g         *Segment
	at, count int
}

func (j *mamba1Job) Do(worker, task int) {
	t := mamba1Task{mamba1Job: j, s: &j.e.scratch[worker].mamba1, at: task % j.parts() * mamba1Part}
	seg := task / j.parts()
	t.g, t.count = &j.f.segs[seg], min(mamba1Part, j.d.width()-t.at)
	s := t.s
	s.states = grow(s.states, (j.walk.states+1)*t.size())
	s.decays = grow(s.decays, t.size())
	t.move(t.state(0), t.g.Cache.firstState(j.layer), false)
	for _, step := range j.walk.steps[j.walk.first[seg]:j.walk.first[seg+1]] {
		if step.fold >= 0 {
			t.fold(step)
		}
		if rows := j.walk.rows[step.row0:step.row1]; len(rows) > 0 {
			t.compute(t.state(step.to), rows)
		}
	}
}

// size is how many numbers the task's channels have.
func (t *mamba1Task) size() int { return t.d.States * t.count }

// state returns the state with a number.
func (t *mamba1Task) state(number int) []float32 { return t.s.states[number*t.size():][:t.size()] }

// move copies the task's channels from a layer's state, or back.
func (t *mamba1Task) move(own, whole []float32, back bool) {
	for n := range t.d.States {
		a, b := own[n*t.count:][:t.count], whole[n*t.d.width()+t.at:][:t.count]
		if back {
			a, b = b, a
		}
		copy(a, b)
	}
}

// fold makes the state after a page.
func (t *mamba1Task) fold(step walkStep) {
	to := t.state(step.to)
	copy(to, t.state(step.from))
	for _, slot := range t.walk.slots[step.fold:][:PageRows] {
		t.carry(to, slot)
	}
	for _, m := range t.g.Cache.states.making {
		if m.page == step.page {
			t.move(to, t.g.Cache.stateAt(t.layer, m.state), true)
		}
	}
}

// carry carries a state over a row.
func (t *mamba1Task) carry(state []float32, slot int32) {
	width, e := t.d.width(), t.s.decays
	row := t.g.Cache.row(t.layer, int(slot))[width:]
	steps, updates := row[t.at:][:t.count], row[width+t.at:][:t.count]
	b := row[2*width:]
	for n := range t.d.States {
		to, a := e[n*t.count:][:t.count], t.d.A[n*width+t.at:][:t.count]
		for k, step := range steps {
			to[k] = a[k] * step
		}
	}
	simd.Exp(e, e)
	for k, x := range e {
		state[k] *= x
	}
	simd.Mix(state, t.count, b, 1, t.d.States, t.count, 1, updates)
}

// compute computes the rows that begin with a state. Rows with a common path share the states on it.
func (t *mamba1Task) compute(state []float32, rows []walkRow) {
	s, size := t.s, t.size()
	first, last := int32(math.MaxInt32), int32(0)
	for _, r := range rows {
		slots := t.walk.slots[r.at : r.at+r.n]
		first, last = min(first, slices.Min(slots)), max(last, slices.Max(slots))
	}
	s.rows = grow(s.rows, int(last-first+1)*size)
	s.made = grow(s.made, int(last-first+1))
	clear(s.made)
	c, base := t.g.Cache, int32(t.g.Base)
	begun := first/PageRows == base/PageRows && first < base // the page has committed rows
	if at := int32(c.states.rows) - 1; begun && at >= first && at < base {
		t.move(s.rows[int(at-first)*size:][:size], c.stateAt(t.layer, c.states.latest), false)
		s.made[at-first] = true
	}
	for _, r := range rows {
		slots := t.walk.slots[r.at : r.at+r.n]
		from, k := state, r.n
		for k > 0 && !s.made[slots[k-1]-first] {
			k--
		}
		if k > 0 {
			from = s.rows[int(slots[k-1]-first)*size:][:size]
		}
		for _, slot := range slots[k:] {
			to := s.rows[int(slot-first)*size:][:size]
			copy(to, from)
			t.carry(to, slot)
			s.made[slot-first] = true
			from = to
		}
		y := t.y.Row(r.row)[t.at:][:t.count]
		clear(y)
		simd.Mix(y, t.count, t.low.Row(r.row)[t.d.States:], t.d.States, 1, t.count, t.d.States, from)
		multiplyAdd(y, t.d.Skip[t.at:], t.mixed.Row(r.row)[t.at:])
	}
	if begun && c.states.next != nil {
		t.move(s.rows[int(base-1-first)*size:][:size], c.stateAt(t.layer, c.states.next), true)
	}
}

// mamba1Output multiplies the results by SiLU of z.
type mamba1Output mamba1Job

func (j *mamba1Output) Do(_, i int) { simd.SiLUMul(j.y.Row(i), j.z.Row(i), j.y.Row(i)) }
