package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// DeltaNet is a layer of gated DeltaNet (arXiv 2412.06464, equation 10). Of each value head, with a key
// k and a query q of length 1 and 1/√KeyDim, a value v, β = σ(Beta·x) and a decay g = A·softplus(Alpha·x + Bias):
//
//	S ← e^g·S    u = β·(v − Sᵀk)    S ← S + k·uᵀ    o = Sᵀq    y = Norm(o)·SiLU(Z·x)
//
// S is KeyDim × ValueDim. On a page whose first row has state S before it, G is the sum of g from the page's
// beginning, and row j with ancestors i there has
//
//	u_j = β_j·(v_j − e^G_j·Sᵀk_j − Σ_i e^(G_j−G_i)·(k_i·k_j)·u_i)
//	o_j = e^G_j·Sᵀq_j + Σ_{i≤j} e^(G_j−G_i)·(k_i·q_j)·u_i
//
// and the page behind it begins with e^G·S + Σ_i e^(G−G_i)·k_i·u_iᵀ. Sums go by position.
type DeltaNet struct {
	QKV, Z, Alpha, Beta Linear
	BetaAlpha           *Linear     // in place of Alpha and Beta: of each key head, β of its value heads, then α (Qwen 3 Next)
	Conv                Convolution // of queries, keys and values, then SiLU
	A, Bias             []float32   // of each value head
	Norm                Norm        // of a value head's results

	KeyHeads, ValueHeads, KeyDim, ValueDim int

	// Grouped: neighbouring value heads share a key head. Else value head h has key head h mod KeyHeads.
	Grouped bool
}

func (d *DeltaNet) keys() int     { return d.KeyHeads * d.KeyDim }
func (d *DeltaNet) values() int   { return d.ValueHeads * d.ValueDim }
func (d *DeltaNet) channels() int { return 2*d.keys() + d.values() }

// A row of a cache is its inputs of the convolution, u and G of each value head; across the page are the
// keys. A state is S of each value head, and the convolution's tail.
func (d *DeltaNet) updates() int { return d.channels() }
func (d *DeltaNet) decays() int  { return d.updates() + d.values() }
func (d *DeltaNet) matrix() int  { return d.KeyDim * d.ValueDim }

func (d *DeltaNet) Shape() *RecurrentShape {
	return &RecurrentShape{Row: d.decays() + d.ValueHeads, Column: d.keys(), State: d.ValueHeads*d.matrix() + d.Conv.tail()}
}

func (d *DeltaNet) Bytes() int {
	if d.BetaAlpha != nil {
		return d.QKV.W.Bytes() + d.Z.W.Bytes() + d.BetaAlpha.W.Bytes()
	}
	return d.QKV.W.Bytes() + d.Z.W.Bytes() + d.Alpha.W.Bytes() + d.Beta.W.Bytes()
}

// deltaBuffers is the activation memory of a layer.
type deltaBuffers struct{ in, mixed, z, gates, together, out Buffer }

func (d *DeltaNet) mix(e *Exec, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	n, b := src.X.Rows, &m.delta
	in, mixed := e.Mat(&b.in, n, d.channels()), e.Mat(&b.mixed, n, d.channels())
	z, gates := e.Mat(&b.z, n, d.values()), e.Mat(&b.gates, n, 2*d.ValueHeads)
	y := e.Mat(&b.out, n, d.values())
	j := e.plan.deltas.next()
	*j = deltaJob{e: e, d: d, layer: layer, f: f, mixed: mixed, gates: gates, z: z, y: y, walk: f.walk()}
	qkv, gate := Proj{Linear: &d.QKV, Dst: in}, Proj{Linear: &d.Z, Dst: z}
	if d.BetaAlpha != nil {
		j.together = e.Mat(&b.together, n, 2*d.ValueHeads)
		e.Linear(src, qkv, gate, Proj{Linear: d.BetaAlpha, Dst: j.together})
	} else {
		e.Linear(src, qkv, gate, Proj{Linear: &d.Alpha, Dst: gates.Columns(0, d.ValueHeads)},
			Proj{Linear: &d.Beta, Dst: gates.Columns(d.ValueHeads, 2*d.ValueHeads)})
	}
	e.convolve(convolveJob{conv: &d.Conv, layer: layer, f: f, x: in, y: mixed, state: d.ValueHeads * d.matrix(), next: j})
	e.plan.phase(len(f.segs)*d.KeyHeads, j)
	e.OwnRows(n, d.values(), (*deltaOutput)(j))
	e.Linear(Source{X: y}, out)
}

// deltaJob computes the rows of a key head and of the value heads that share it, for one sequence.
type deltaJob struct {
	e     *Exec
	d     *DeltaNet
	layer int
	f     *Forest
	walk  *walk

	mixed Mat // queries, keys, values
	gates Mat // Alpha·x, Beta·x; then g, β

	together Mat // BetaAlpha·x
	z, y     Mat
}

// rowDone makes queries, keys, values, decays and β of row i's convolution, and stores the keys.
func (j *deltaJob) rowDone(_, i int) {
	d, x := j.d, j.mixed.Row(i)
	silu(x)
	scale := float32(1 / math.Sqrt(float64(d.KeyDim)))
	var weights [256]float32
	for h := range 2 * d.KeyHeads {
		w, to := scale, x[h*d.KeyDim:][:d.KeyDim] // RMSNorm makes vectors of length √KeyDim
		if h < d.KeyHeads {
			w *= scale
		}
		for k := range d.KeyDim {
			weights[k] = w
		}
		simd.RMSNorm(to, to, weights[:d.KeyDim], 1e-6/float32(d.KeyDim))
	}
	g := j.f.segmentOf(i)
	slot := g.slot(i)
	columns := g.Cache.columns(j.layer, slot/PageRows)
	for k, v := range x[d.keys() : 2*d.keys()] {
		columns[k*PageRows+slot%PageRows] = v
	}
	gates := j.gates.Row(i)
	alpha, beta := gates[:d.ValueHeads], gates[d.ValueHeads:]
	if d.BetaAlpha != nil {
		shared := d.ValueHeads / d.KeyHeads
		for at, both := 0, j.together.Row(i); at < d.ValueHeads; at += shared {
			copy(beta[at:at+shared], both[2*at:])
			copy(alpha[at:at+shared], both[2*at+shared:])
		}
	}
	for h := range alpha {
		alpha[h] = d.A[h] * softplus(alpha[h]+d.Bias[h])
	}
	sigmoid(beta)
}

// silu makes x x·σ(x).
func silu(x []float32) {
	var ones [256]float32
	for i := range ones {
		ones[i] = 1
	}
	for len(x) > 0 {
		n := min(len(x), len(ones))
		simd.SiLUMul(x[:n], x[:n], ones[:n])
		x = x[n:]
	}
}

// softplus is ln(1 + e^x), as PyTorch has it x above 20.
func softplus(x float32) float32 {
	if x > 20 {
		return x
	}
	e := [1]float32{x}
	simd.Exp(e[:], e[:])
	return simd.Log(1 + e[0])
}

// deltaRows is how many rows are computed side by side, as far as they need not be one after another.
const deltaRows = 64

// deltaScratch is memory of a worker.
type deltaScratch struct {
	states, keys, results, scores, updates, factors []float32

	decays [PageRows + 1]float32
}

// deltaTask is the work of one key head and one sequence.
type deltaTask struct {
	*deltaJob
	s      *deltaScratch
	g      *Segment
	key    int // the key head
	shared int // value heads of it
}

func (j *deltaJob) Do(worker, task int) {
	d, w := j.d, j.walk
	t := deltaTask{deltaJob: j, s: &j.e.scratch[worker].delta, key: task % d.KeyHeads, shared: d.ValueHeads / d.KeyHeads}
	seg := task / d.KeyHeads
	t.g = &j.f.segs[seg]
	s := t.s
	s.states = grow(s.states, w.states*t.shared*d.matrix())
	s.keys = grow(s.keys, 2*deltaRows*d.KeyDim)
	s.results = grow(s.results, 2*deltaRows*d.ValueDim)
	s.updates = grow(s.updates, PageRows*d.ValueDim)
	s.factors = grow(s.factors, PageRows*d.KeyDim)
	for _, step := range w.steps[w.first[seg]:w.first[seg+1]] {
		if step.fold >= 0 {
			t.fold(step)
		}
		for rows := w.rows[step.row0:step.row1]; len(rows) > 0; {
			n := min(len(rows), deltaRows)
			t.compute(step.to, rows[:n])
			rows = rows[n:]
		}
	}
}

// head is the i-th value head of the key head.
func (t *deltaTask) head(i int) int {
	if t.d.Grouped {
		return t.key*t.shared + i
	}
	return i*t.d.KeyHeads + t.key
}

// state is that of a number and the i-th value head.
func (t *deltaTask) state(number, i int) []float32 {
	size := t.d.matrix()
	if number == 0 {
		return t.g.Cache.firstState(t.layer)[t.head(i)*size:][:size]
	}
	return t.s.states[((number-1)*t.shared+i)*size:][:size]
}

func (t *deltaTask) update(slot int32, head int) []float32 {
	return t.g.Cache.row(t.layer, int(slot))[t.d.updates()+head*t.d.ValueDim:][:t.d.ValueDim]
}

// decay is G of a row.
func (t *deltaTask) decay(slot int32, head int) *float32 {
	return &t.g.Cache.row(t.layer, int(slot))[t.d.decays()+head]
}

// since computes e^(G−G_i) of a row's ancestors, and then e^G, in the scratch.
func (t *deltaTask) since(g float32, slots []int32, head int) []float32 {
	e := t.s.decays[:len(slots)+1]
	for k, slot := range slots {
		e[k] = g - *t.decay(slot, head)
	}
	e[len(slots)] = g
	simd.Exp(e, e)
	return e
}

// fold makes the state behind a page.
func (t *deltaTask) fold(step walkStep) {
	d, s := t.d, t.s
	slots := t.walk.slots[step.fold:][:PageRows]
	for i := range t.shared {
		h := t.head(i)
		e := t.since(*t.decay(slots[PageRows-1], h), slots, h)
		for k, slot := range slots {
			copy(s.updates[k*d.ValueDim:], t.update(slot, h))
			columns := t.g.Cache.columns(t.layer, int(slot)/PageRows)[t.key*d.KeyDim*PageRows+int(slot)%PageRows:]
			for a := range d.KeyDim {
				s.factors[a*PageRows+k] = e[k] * columns[a*PageRows]
			}
		}
		to := t.state(step.to, i)
		copy(to, t.state(step.from, i))
		simd.Scale(to, e[PageRows])
		simd.Mix(to, d.ValueDim, s.factors, PageRows, d.KeyDim, d.ValueDim, PageRows, s.updates)
		for _, m := range t.g.Cache.states.making {
			if m.page == step.page {
				copy(t.g.Cache.stateAt(t.layer, m.state)[h*d.matrix():], to)
			}
		}
	}
}

// compute computes rows that begin with a state.
func (t *deltaTask) compute(state int, rows []walkRow) {
	d, s := t.d, t.s
	n := len(rows)
	first, last := math.MaxInt, 0 // pages
	for k, r := range rows {
		x := t.mixed.Row(r.row)
		copy(s.keys[k*d.KeyDim:], x[d.keys()+t.key*d.KeyDim:][:d.KeyDim])
		copy(s.keys[(n+k)*d.KeyDim:], x[t.key*d.KeyDim:][:d.KeyDim])
		for _, slot := range t.walk.slots[r.at : r.at+r.n] {
			first, last = min(first, int(slot)/PageRows), max(last, int(slot)/PageRows)
		}
	}
	width := (last - first + 1) * PageRows // scores of keys, then of queries, by slot
	s.scores = grow(s.scores, 2*n*width)
	for page := first; page <= last; page++ {
		keys := t.g.Cache.columns(t.layer, page)[t.key*d.KeyDim*PageRows:]
		simd.Scores(s.scores[(page-first)*PageRows:], width, s.keys, d.KeyDim, 2*n, d.KeyDim, keys)
	}
	for i := range t.shared {
		h := t.head(i)
		res := s.results[:2*n*d.ValueDim]
		clear(res)
		simd.Mix(res, d.ValueDim, s.keys, d.KeyDim, 2*n, d.ValueDim, d.KeyDim, t.state(state, i))
		for k, r := range rows {
			slots := t.walk.slots[r.at : r.at+r.n]
			t.row(h, r.row, slots, res[k*d.ValueDim:][:d.ValueDim], res[(n+k)*d.ValueDim:][:d.ValueDim],
				s.scores[k*width:][:width], s.scores[(n+k)*width:][:width], first*PageRows)
		}
	}
}

// row computes a row of value head h from Sᵀk and Sᵀq, and its key's and query's scores by slot from at on.
func (t *deltaTask) row(h, row int, slots []int32, sk, sq, byKey, byQuery []float32, at int) {
	d := t.d
	gates := t.gates.Row(row)
	own := slots[len(slots)-1]
	before := slots[:len(slots)-1]
	g := gates[h]
	if len(before) > 0 {
		g += *t.decay(before[len(before)-1], h)
	}
	*t.decay(own, h) = g
	e := t.since(g, before, h)
	u, y := t.update(own, h), t.y.Row(row)[h*d.ValueDim:][:d.ValueDim]
	copy(u, t.mixed.Row(row)[2*d.keys()+h*d.ValueDim:])
	copy(y, sq)
	simd.Axpy(u, -e[len(before)], sk)
	simd.Scale(y, e[len(before)])
	for k, slot := range before {
		x := t.update(slot, h)
		simd.Axpy(u, -float32(e[k]*byKey[int(slot)-at]), x)
		simd.Axpy(y, float32(e[k]*byQuery[int(slot)-at]), x)
	}
	simd.Scale(u, gates[d.ValueHeads+h])
	simd.Axpy(y, byQuery[int(own)-at], u)
}

// deltaOutput normalises the results and multiplies them by SiLU of z.
type deltaOutput deltaJob

func (j *deltaOutput) Do(_, i int) {
	y, z := j.y.Row(i), j.z.Row(i)
	for h := 0; h < len(y); h += j.d.ValueDim {
		to := y[h : h+j.d.ValueDim]
		j.d.Norm.apply(to, to)
	}
	simd.SiLUMul(y, z, y)
}
