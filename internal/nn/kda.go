package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// KimiDelta is a layer of Kimi Delta Attention (arXiv 2510.26692): gated DeltaNet, in which each channel of a
// head's key has a decay of its own. With d = e^(A·softplus(Decay·x + Bias)), a vector of Dim numbers for each head,
//
//	S ← diag(d)·S    u = β·(v − Sᵀk)    S ← S + k·uᵀ    o = Sᵀq    y = Norm(o)·σ(Gate·x)
//
// On a page whose first row is preceded by state S, D is the product of d from the start of the page, D_i that
// of the rows after row i, and for row j with ancestors i there
//
//	u_j = β_j·(v_j − Sᵀ(D·k_j) − Σ_i (k_j·(D_i·k_i))·u_i)
//	o_j = Sᵀ(D·q_j) + Σ_{i≤j} (q_j·(D_i·k_i))·u_i
//
// and the next page begins with diag(D)·S + Σ_i (D_i·k_i)·u_iᵀ. D and D_i are products of numbers up to 1, made
// from row j backwards: quotients of sums of logarithms would overflow.
type KimiDelta struct {
	Q, K, V    Linear
	Beta       Linear
	Decay      [2]Linear   // a product of low rank: the second reads the first's results
	Gate       [2]Linear   // the same
	Conv       Convolution // of queries, keys and values, then SiLU
	A          []float32   // of each head
	Bias       []float32   // of each channel
	Norm       Norm        // of a head's results
	Heads, Dim int         // Dim is also the rank of Decay and Gate
}

func (d *KimiDelta) width() int { return d.Heads * d.Dim }

// heads describes the layer's states. A row of the convolution has queries, keys, values.
func (d *KimiDelta) heads() outerHeads {
	return outerHeads{keyHeads: d.Heads, heads: d.Heads, keyDim: d.Dim, dim: d.Dim,
		keys: d.width(), values: 2 * d.width(), corrects: true, byChannel: true}
}

func (d *KimiDelta) Shape() *RecurrentShape { h := d.heads(); return h.shape(&d.Conv) }

func (d *KimiDelta) Bytes() (size int) {
	for _, l := range []*Linear{&d.Q, &d.K, &d.V, &d.Beta, &d.Decay[0], &d.Decay[1], &d.Gate[0], &d.Gate[1]} {
		size += l.W.Bytes()
	}
	return size
}

func (d *KimiDelta) mix(e *Exec, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	n, b := src.X.Rows, &m.delta
	width, rank := d.width(), d.Decay[0].W.Out()
	in, mixed := e.Mat(&b.in, n, 3*width), e.Mat(&b.mixed, n, 3*width)
	z, low := e.Mat(&b.z, n, 2*width), e.Mat(&b.both, n, 2*rank)
	beta, y := e.Mat(&b.gates, n, d.Heads), e.Mat(&b.out, n, width)
	decay, gate := z.Columns(0, width), z.Columns(width, 2*width)
	e.Linear(src, Proj{Linear: &d.Q, Dst: in.Columns(0, width)}, Proj{Linear: &d.K, Dst: in.Columns(width, 2*width)},
		Proj{Linear: &d.V, Dst: in.Columns(2*width, 3*width)}, Proj{Linear: &d.Beta, Dst: beta},
		Proj{Linear: &d.Decay[0], Dst: low.Columns(0, rank)}, Proj{Linear: &d.Gate[0], Dst: low.Columns(rank, 2*rank)})
	e.Linear(Source{X: low.Columns(0, rank)}, Proj{Linear: &d.Decay[1], Dst: decay})
	e.Linear(Source{X: low.Columns(rank, 2*rank)}, Proj{Linear: &d.Gate[1], Dst: gate})
	j := e.plan.kimiDeltas.next(&e.plan)
	*j = kimiDeltaJob{d: d, decay: decay, gate: gate, outerJob: outerJob{e: e, outerHeads: d.heads(), layer: layer, f: f,
		mixed: mixed, gates: beta, y: y}}
	e.outer(&j.outerJob, convolveJob{conv: &d.Conv, x: in, next: j})
	e.OwnRows(n, width, (*kimiDeltaOutput)(j))
	e.Linear(Source{X: y}, out)
}

// kimiDeltaJob is a layer's part of a pass. Its gates are β.
type kimiDeltaJob struct {
	outerJob
	d           *KimiDelta
	decay, gate Mat // Decay·x and Gate·x
}

// rowDone makes queries and keys from row i's convolution, and β, and stores decays and keys.
func (j *kimiDeltaJob) rowDone(_, i int) {
	d, x := j.d, j.mixed.Row(i)
	silu(x)
	unitLength(x[:d.width()], d.Dim, float32(1/math.Sqrt(float64(d.Dim))))
	unitLength(x[d.width():2*d.width()], d.Dim, 1)
	Sigmoid(j.gates.Row(i))
	g := j.f.segmentOf(i)
	row := g.Cache.row(j.layer, g.slot(i))[j.decays():]
	decays, keys := row[:d.width()], row[d.width():]
	copy(keys, x[j.keys:])
	raw := j.decay.Row(i)
	simd.Add(raw, d.Bias)
	simd.Exp(decays, raw)
	for k, v := range raw {
		if v <= 20 { // as in PyTorch, softplus is v above it
			v = simd.Log(1 + decays[k])
		}
		decays[k] = d.A[k/d.Dim] * v
	}
	simd.Exp(decays, decays)
}

// kimiDeltaOutput normalises the results and multiplies them by σ of the gates.
type kimiDeltaOutput kimiDeltaJob

func (j *kimiDeltaOutput) Do(_, i int) {
	y, gate := j.y.Row(i), j.gate.Row(i)
	for h := 0; h < len(y); h += j.d.Dim {
		to := y[h : h+j.d.Dim]
		j.d.Norm.apply(to, to)
	}
	Sigmoid(gate)
	for k, s := range gate {
		y[k] *= s
	}
}

// channels returns the decays and the key that a head keeps for a row.
func (t *outerTask) channels(slot int32) (decays, key []float32) {
	row := t.g.Cache.row(t.layer, int(slot))[t.decays()+t.key*t.keyDim:]
	return row[:t.keyDim], row[t.keyHeads*t.keyDim:][:t.keyDim]
}

// decayKeys computes the keys of rows that follow one another, each times the decays of the rows after it, as a
// page of the scratch's factors; and the product of all rows' decays.
func (t *outerTask) decayKeys(slots []int32) []float32 {
	s := t.s
	s.whole = grow(s.whole, t.keyDim)
	whole := s.whole[:t.keyDim]
	for a := range whole {
		whole[a] = 1
	}
	for k := len(slots) - 1; k >= 0; k-- {
		decays, key := t.channels(slots[k])
		for a, d := range decays {
			s.factors[a*PageRows+k] = whole[a] * key[a]
			whole[a] *= d
		}
	}
	return whole
}

// computeChannels is compute where each channel has its decays.
func (t *outerTask) computeChannels(state int, rows []walkRow) {
	s, size := t.s, t.keyDim
	n := 2 * len(rows) // the query and the key of each row
	s.scores = grow(s.scores, n*PageRows)
	for k, r := range rows {
		x, both := t.mixed.Row(r.row), s.keys[2*k*size:][:2*size]
		copy(both, x[t.queries+t.key*size:][:size])
		copy(both[size:], x[t.keys+t.key*size:][:size])
		whole := t.decayKeys(t.walk.slots[r.at : r.at+r.n])
		simd.Scores(s.scores[2*k*PageRows:], PageRows, both, size, 2, size, s.factors)
		for a := range both {
			both[a] *= whole[a%size]
		}
	}
	res := s.results[:n*t.dim]
	clear(res)
	simd.Mix(res, t.dim, s.keys, size, n, t.dim, size, t.state(state, 0))
	for k, r := range rows {
		slots, last := t.walk.slots[r.at:r.at+r.n], r.n-1
		byQuery, byKey := s.scores[2*k*PageRows:], s.scores[(2*k+1)*PageRows:]
		u, y := t.update(slots[last], t.key), t.y.Row(r.row)[t.key*t.dim:][:t.dim]
		copy(u, t.mixed.Row(r.row)[t.values+t.key*t.dim:][:t.dim])
		copy(y, res[2*k*t.dim:])
		simd.Axpy(u, -1, res[(2*k+1)*t.dim:])
		for i, slot := range slots[:last] {
			simd.Axpy(u, -byKey[i], t.update(slot, t.key))
			simd.Axpy(y, byQuery[i], t.update(slot, t.key))
		}
		simd.Scale(u, t.gates.Row(r.row)[t.key])
		simd.Axpy(y, byQuery[last], u)
	}
}
