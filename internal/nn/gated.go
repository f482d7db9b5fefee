package nn

import "github.com/grovellm/grove/internal/kernels/simd"

// gatedAttention is attention whose results are multiplied by gates.
func (e *Exec) gatedAttention(b *Block, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	if e.records != nil {
		panic("nn: gated attention has no gradient: it can be a target's, not a head's or a trained model's")
	}
	a, n := &b.Attn, src.X.Rows
	width, keys := a.Heads*a.Dim, a.KVHeads*a.Dim
	qkv, attn := e.mat(&m.qkv, n, a.QKVCols(), m.widest.qkv), e.mat(&m.attn, n, width, m.widest.attn)
	k := Proj{Linear: &b.QKV[1], Dst: qkv.Columns(width, width+keys)}
	v := Proj{Linear: &b.QKV[2], Dst: qkv.Columns(width+keys, width+2*keys)}
	gate := e.plan.sigmoids.next(&e.plan)
	if len(b.QKV) > 3 { // gates have their own product
		gates := e.mat(&m.gated, n, b.QKV[3].W.Out(), m.widest.attn)
		e.Linear(src, Proj{Linear: &b.QKV[0], Dst: qkv.Columns(0, width)}, k, v, Proj{Linear: &b.QKV[3], Dst: gates})
		*gate = sigmoidJob{gates, attn, width, 0}
		switch {
		case a.SoftplusGates:
			*gate = sigmoidJob{gates, attn, width / gates.Cols, softplusGates}
		case gates.Cols < width:
			*gate = sigmoidJob{gates, attn, width / gates.Cols, headGates}
		}
	} else {
		both := e.Mat(&m.gated, n, 2*width)
		e.Linear(src, Proj{Linear: &b.QKV[0], Dst: both}, k, v)
		queries := e.plan.queries.next(&e.plan)
		*queries = queriesJob{both, qkv, a.Dim}
		e.OwnRows(n, width, queries)
		*gate = sigmoidJob{both, attn, a.Dim, a.Dim}
	}
	e.plan.open = nil // all keys and values must be stored before any row attends
	e.Attend(a, layer, f, qkv, attn)
	e.OwnRows(n, width, gate)
	e.Linear(Source{X: attn}, out)
}

// queriesJob extracts the queries from rows of queries and gates.
type queriesJob struct {
	both, q Mat
	dim     int
}

func (j *queriesJob) Do(_, i int) {
	both, q := j.both.Row(i), j.q.Row(i)
	for h := 0; 2*h < len(both); h += j.dim {
		copy(q[h:h+j.dim], both[2*h:])
	}
}

// sigmoidJob multiplies results by σ of their gates, which it overwrites. Each run of dim gates
// follows other numbers; or each gate, through σ or softplus, is that of dim results.
type sigmoidJob struct {
	gates, x    Mat
	dim, before int
}

const softplusGates, headGates = -1, -2

func (j *sigmoidJob) Do(_, i int) {
	gates, x := j.gates.Row(i), j.x.Row(i)
	if j.before == softplusGates {
		for g, gate := range gates {
			gates[g] = softplus(gate)
		}
	}
	if j.before == headGates {
		Sigmoid(gates)
	}
	if j.before < 0 {
		for g, gate := range gates {
			simd.Scale(x[g*j.dim:(g+1)*j.dim], gate)
		}
		return
	}
	for h := 0; h < len(x); h += j.dim {
		gate := gates[h/j.dim*(j.before+j.dim)+j.before:][:j.dim]
		Sigmoid(gate)
		for k, s := range gate {
			x[h+k] *= s
		}
	}
}

// rowGateJob multiplies rows by σ of their gates, which it overwrites.
type rowGateJob struct{ gate, x Mat }

func (j *rowGateJob) Do(_, i int) {
	gate := j.gate.Row(i)
	Sigmoid(gate)
	simd.Scale(j.x.Row(i), gate[0])
}
