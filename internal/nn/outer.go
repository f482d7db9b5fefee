package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// In gated DeltaNet and Mamba-2, each head has a state S, keyDim × dim, which decays and to which every
// row adds the outer product of a key k and an update u. A row's result is Sᵀq. DeltaNet's update is
// β·(v − Sᵀk), with the decayed S: it corrects the value that S holds for the key. Mamba-2's is Δ·v.
// Both are computed here from a page's first state and its rows, as DeltaNet describes.

// outerHeads describes a layer's states and their inputs.
type outerHeads struct {
	keyHeads, heads, keyDim, dim int

	grouped   bool // neighbouring heads share a key head; otherwise head h has key head h mod keyHeads
	corrects  bool
	byChannel bool // each channel of a key has decays of its own, and each head a key (KimiDelta)

	queries, keys, values int // where they begin in a row of the convolution's results
}

// A row of a cache is the convolution's inputs, then u and G of each head; the keys lie across the
// page. With decays by channel, these are stored in place of G, and then the keys. A state is S of each head
// and the convolution's tail.
func (o *outerHeads) updates() int { return 2*o.keyHeads*o.keyDim + o.heads*o.dim }
func (o *outerHeads) decays() int  { return o.updates() + o.heads*o.dim }
func (o *outerHeads) matrix() int  { return o.keyDim * o.dim }

func (o *outerHeads) shape(conv *Convolution) *RecurrentShape {
	s := &RecurrentShape{Row: o.decays() + o.heads, Column: o.keyHeads * o.keyDim, State: o.heads*o.matrix() + conv.tail()}
	if o.byChannel {
		s.Row, s.Column = o.decays()+2*s.Column, 0
	}
	return s
}

// shared is how many heads share a key head, and together how many of these make a task.
func (o *outerHeads) shared() int { return o.heads / o.keyHeads }
func (o *outerHeads) together() int {
	for n := min(o.shared(), 8); ; n-- {
		if o.shared()%n == 0 {
			return n
		}
	}
}

// outerJob computes the rows of a pass; a task is a few heads of one key head in one sequence.
type outerJob struct {
	outerHeads
	e     *Exec
	layer int
	f     *Forest
	walk  *walk

	mixed Mat       // queries, keys, values
	gates Mat       // for each head, g, then the factor of updates
	skip  []float32 // for each head, the factor with which a row's value is added to its result; nil: 0
	y     Mat
}

// outer plans the convolution c, whose next makes keys and gates from its results, and then the rows of j.
func (e *Exec) outer(j *outerJob, c convolveJob) {
	j.walk = j.f.walk()
	c.layer = j.layer
	c.f = j.f
	c.y = j.mixed
	c.state = j.heads * j.matrix()
	e.convolve(c)
	e.plan.phase(len(j.f.segs)*j.heads/j.together(), j)
}

// storeKeys stores the keys of row i.
func (j *outerJob) storeKeys(i int) {
	g := j.f.segmentOf(i)
	slot := g.slot(i)
	columns := g.Cache.columns(j.layer, slot/PageRows)
	for k, v := range j.mixed.Row(i)[j.keys:][:j.keyHeads*j.keyDim] {
		columns[k*PageRows+slot%PageRows] = v
	}
}

// outerRows is how many rows are computed side by side, as far as they do not depend on one another.
const outerRows = 64

// outerScratch is memory of a worker.
type outerScratch struct {
	states, keys, results, scores, updates, factors, whole []float32

	decays [PageRows + 1]float32
}

type outerTask struct {
	*outerJob
	s     *outerScratch
	g     *Segment
	key   int // the key head
	first int // of the heads that share it, the first one in the task
	count int
}

func (j *outerJob) Do(worker, task int) {
	w := j.walk
	t := outerTask{outerJob: j, s: &j.e.scratch[worker].outer, count: j.together()}
	parts := j.shared() / t.count
	seg := task / (j.keyHeads * parts)
	t.g = &j.f.segs[seg]
	t.key = task / parts % j.keyHeads
	t.first = task % parts * t.count
	s := t.s
	s.states = grow(s.states, w.states*t.count*j.matrix())
	s.keys = grow(s.keys, 2*outerRows*j.keyDim)
	s.results = grow(s.results, 2*outerRows*j.dim)
	s.updates = grow(s.updates, PageRows*j.dim)
	s.factors = grow(s.factors, PageRows*j.keyDim)
	for _, step := range w.steps[w.first[seg]:w.first[seg+1]] {
		if step.fold >= 0 {
			t.fold(step)
		}
		for rows := w.rows[step.row0:step.row1]; len(rows) > 0; {
			n := min(len(rows), outerRows)
			t.compute(step.to, rows[:n])
			rows = rows[n:]
		}
	}
}

// head returns the i-th head of the task.
func (t *outerTask) head(i int) int {
	if t.grouped {
		return t.key*t.shared() + t.first + i
	}
	return (t.first+i)*t.keyHeads + t.key
}

// state returns the state with a number, of the i-th head.
func (t *outerTask) state(number, i int) []float32 {
	size := t.matrix()
	if number == 0 {
		return t.g.Cache.firstState(t.layer)[t.head(i)*size:][:size]
	}
	return t.s.states[((number-1)*t.count+i)*size:][:size]
}

func (t *outerTask) update(slot int32, head int) []float32 {
	return t.g.Cache.row(t.layer, int(slot))[t.updates()+head*t.dim:][:t.dim]
}

// decay points to G of a row.
func (t *outerTask) decay(slot int32, head int) *float32 {
	return &t.g.Cache.row(t.layer, int(slot))[t.decays()+head]
}

// since computes e^(G−G_i) for a row's ancestors, and then e^G, in the scratch.
func (t *outerTask) since(g float32, slots []int32, head int) []float32 {
	e := t.s.decays[:len(slots)+1]
	for k, slot := range slots {
		e[k] = g - *t.decay(slot, head)
	}
	e[len(slots)] = g
	simd.Exp(e, e)
	return e
}

// fold makes the state after a page.
func (t *outerTask) fold(step walkStep) {
	s := t.s
	slots := t.walk.slots[step.fold:][:PageRows]
	for i := range t.count {
		h := t.head(i)
		to := t.state(step.to, i)
		copy(to, t.state(step.from, i))
		for k, slot := range slots {
			copy(s.updates[k*t.dim:], t.update(slot, h))
		}
		if t.byChannel {
			for a, d := range t.decayKeys(slots) {
				simd.Scale(to[a*t.dim:][:t.dim], d)
			}
		} else {
			t.decayAlike(to, slots, h)
		}
		simd.Mix(to, t.dim, s.factors, PageRows, t.keyDim, t.dim, PageRows, s.updates)
		for _, m := range t.g.Cache.states.making {
			if m.page == step.page {
				copy(t.g.Cache.stateAt(t.layer, m.state)[h*t.matrix():], to)
			}
		}
	}
}

// decayAlike multiplies a head's state by the decay of a page, and makes the factors of the page's updates.
func (t *outerTask) decayAlike(state []float32, slots []int32, h int) {
	e := t.since(*t.decay(slots[PageRows-1], h), slots, h)
	for k, slot := range slots {
		columns := t.g.Cache.columns(t.layer, int(slot)/PageRows)[t.key*t.keyDim*PageRows+int(slot)%PageRows:]
		for a := range t.keyDim {
			t.s.factors[a*PageRows+k] = e[k] * columns[a*PageRows]
		}
	}
	simd.Scale(state, e[PageRows])
}

// compute computes the rows that begin with a state.
func (t *outerTask) compute(state int, rows []walkRow) {
	if t.byChannel {
		t.computeChannels(state, rows)
		return
	}
	s, size := t.s, t.keyDim
	n := len(rows)
	both := n // queries, then keys
	if t.corrects {
		both = 2 * n
	}
	first, last := math.MaxInt, 0 // pages
	for k, r := range rows {
		x := t.mixed.Row(r.row)
		copy(s.keys[k*size:], x[t.queries+t.key*size:][:size])
		if t.corrects {
			copy(s.keys[(n+k)*size:], x[t.keys+t.key*size:][:size])
		}
		for _, slot := range t.walk.slots[r.at : r.at+r.n] {
			first, last = min(first, int(slot)/PageRows), max(last, int(slot)/PageRows)
		}
	}
	width := (last - first + 1) * PageRows // scores by slot
	s.scores = grow(s.scores, both*width)
	for page := first; page <= last; page++ {
		keys := t.g.Cache.columns(t.layer, page)[t.key*size*PageRows:]
		simd.Scores(s.scores[(page-first)*PageRows:], width, s.keys, size, both, size, keys)
	}
	for i := range t.count {
		res := s.results[:both*t.dim]
		clear(res)
		simd.Mix(res, t.dim, s.keys, size, both, t.dim, size, t.state(state, i))
		for k, r := range rows {
			x := outerRow{head: t.head(i), row: r.row, slots: t.walk.slots[r.at : r.at+r.n], at: first * PageRows,
				query: res[k*t.dim:][:t.dim], byQuery: s.scores[k*width:][:width]}
			if t.corrects {
				x.key, x.byKey = res[(n+k)*t.dim:][:t.dim], s.scores[(n+k)*width:][:width]
			}
			t.row(&x)
		}
	}
}

// outerRow is a row of a head: the slots of its ancestors and its own, Sᵀq and Sᵀk, and the scores
// of its query and its key by slot, from at on.
type outerRow struct {
	head, row, at  int
	slots          []int32
	query, key     []float32
	byQuery, byKey []float32
}

func (t *outerTask) row(r *outerRow) {
	h, gates := r.head, t.gates.Row(r.row)
	own := r.slots[len(r.slots)-1]
	before := r.slots[:len(r.slots)-1]
	g := gates[h]
	if len(before) > 0 {
		g += *t.decay(before[len(before)-1], h)
	}
	*t.decay(own, h) = g
	e := t.since(g, before, h)
	u, y := t.update(own, h), t.y.Row(r.row)[h*t.dim:][:t.dim]
	value := t.mixed.Row(r.row)[t.values+h*t.dim:][:t.dim]
	copy(u, value)
	copy(y, r.query)
	simd.Scale(y, e[len(before)])
	if t.corrects {
		simd.Axpy(u, -e[len(before)], r.key)
	}
	for k, slot := range before {
		x := t.update(slot, h)
		if t.corrects {
			simd.Axpy(u, -float32(e[k]*r.byKey[int(slot)-r.at]), x)
		}
		simd.Axpy(y, float32(e[k]*r.byQuery[int(slot)-r.at]), x)
	}
	simd.Scale(u, gates[t.heads+h])
	simd.Axpy(y, r.byQuery[int(own)-r.at], u)
	if t.skip != nil {
		simd.Axpy(y, t.skip[h], value)
	}
}
