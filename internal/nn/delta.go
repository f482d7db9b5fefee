package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// DeltaNet is a layer of gated DeltaNet (arXiv 2412.06464, equation 10). For each value head, with a key k of
// length 1 and a query q of length 1/√KeyDim, a value v, β = σ(Beta·x) and a decay g = A·softplus(Alpha·x + Bias):
//
//	S ← e^g·S    u = β·(v − Sᵀk)    S ← S + k·uᵀ    o = Sᵀq    y = Norm(o)·SiLU(Z·x)
//
// S is KeyDim × ValueDim. On a page whose first row is preceded by state S, G is the sum of g from
// the start of the page, and for row j with ancestors i there
//
//	u_j = β_j·(v_j − e^G_j·Sᵀk_j − Σ_i e^(G_j−G_i)·(k_i·k_j)·u_i)
//	o_j = e^G_j·Sᵀq_j + Σ_{i≤j} e^(G_j−G_i)·(k_i·q_j)·u_i
//
// and the next page begins with e^G·S + Σ_i e^(G−G_i)·k_i·u_iᵀ. Sums go by position.
type DeltaNet struct {
	QKV, Z, Alpha, Beta Linear
	// in place of Alpha and Beta: for each key head, β of its value heads, then α (Qwen 3 Next)
	BetaAlpha *Linear
	Conv      Convolution // of queries, keys and values, then SiLU
	A, Bias   []float32   // of each value head
	Norm      Norm        // of a value head's results

	KeyHeads, ValueHeads, KeyDim, ValueDim int

	// Grouped: neighbouring value heads share a key head. Otherwise value head h has key head h mod KeyHeads.
	Grouped bool
}

func (d *DeltaNet) keys() int     { return d.KeyHeads * d.KeyDim }
func (d *DeltaNet) values() int   { return d.ValueHeads * d.ValueDim }
func (d *DeltaNet) channels() int { return 2*d.keys() + d.values() }

// heads describes the layer's states. A row of the convolution has queries, keys, values.
func (d *DeltaNet) heads() outerHeads {
	return outerHeads{keyHeads: d.KeyHeads, heads: d.ValueHeads, keyDim: d.KeyDim, dim: d.ValueDim, grouped: d.Grouped,
		keys: d.keys(), values: 2 * d.keys(), corrects: true}
}

func (d *DeltaNet) Shape() *RecurrentShape { h := d.heads(); return h.shape(&d.Conv) }

func (d *DeltaNet) Bytes() int {
	if d.BetaAlpha != nil {
		return d.QKV.W.Bytes() + d.Z.W.Bytes() + d.BetaAlpha.W.Bytes()
	}
	return d.QKV.W.Bytes() + d.Z.W.Bytes() + d.Alpha.W.Bytes() + d.Beta.W.Bytes()
}

// deltaBuffers is the activation memory of a layer.
type deltaBuffers struct{ in, mixed, z, gates, both, out Buffer }

func (d *DeltaNet) mix(e *Exec, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	n, b := src.X.Rows, &m.delta
	in, mixed := e.Mat(&b.in, n, d.channels()), e.Mat(&b.mixed, n, d.channels())
	z, gates := e.Mat(&b.z, n, d.values()), e.Mat(&b.gates, n, 2*d.ValueHeads)
	y := e.Mat(&b.out, n, d.values())
	j := e.plan.deltas.next(&e.plan)
	*j = deltaJob{d: d, z: z, outerJob: outerJob{e: e, outerHeads: d.heads(), layer: layer, f: f,
		mixed: mixed, gates: gates, y: y}}
	qkv, gate := Proj{Linear: &d.QKV, Dst: in}, Proj{Linear: &d.Z, Dst: z}
	if d.BetaAlpha != nil {
		j.both = e.Mat(&b.both, n, 2*d.ValueHeads)
		e.Linear(src, qkv, gate, Proj{Linear: d.BetaAlpha, Dst: j.both})
	} else {
		e.Linear(src, qkv, gate, Proj{Linear: &d.Alpha, Dst: gates.Columns(0, d.ValueHeads)},
			Proj{Linear: &d.Beta, Dst: gates.Columns(d.ValueHeads, 2*d.ValueHeads)})
	}
	e.outer(&j.outerJob, convolveJob{conv: &d.Conv, x: in, next: j})
	e.OwnRows(n, d.values(), (*deltaOutput)(j))
	e.Linear(Source{X: y}, out)
}

// deltaJob is a layer's part of a pass. Its gates are Alpha·x and Beta·x, then g and β.
type deltaJob struct {
	outerJob
	d    *DeltaNet
	z    Mat
	both Mat // BetaAlpha·x
}

// rowDone makes queries, keys, values, decays and β from row i's convolution, and stores the keys.
func (j *deltaJob) rowDone(_, i int) {
	d, x := j.d, j.mixed.Row(i)
	silu(x)
	unitLength(x[:d.keys()], d.KeyDim, float32(1/math.Sqrt(float64(d.KeyDim))))
	unitLength(x[d.keys():2*d.keys()], d.KeyDim, 1)
	j.storeKeys(i)
	gates := j.gates.Row(i)
	alpha, beta := gates[:d.ValueHeads], gates[d.ValueHeads:]
	if d.BetaAlpha != nil {
		shared := d.ValueHeads / d.KeyHeads
		for at, both := 0, j.both.Row(i); at < d.ValueHeads; at += shared {
			copy(beta[at:at+shared], both[2*at:])
			copy(alpha[at:at+shared], both[2*at+shared:])
		}
	}
	for h := range alpha {
		alpha[h] = d.A[h] * softplus(alpha[h]+d.Bias[h])
	}
	Sigmoid(beta)
}

// unitLength gives vectors of dim numbers the length 1, and then multiplies them by scale.
func unitLength(x []float32, dim int, scale float32) {
	var weights [256]float32
	for k := range dim {
		weights[k] = float32(1/math.Sqrt(float64(dim))) * scale // RMSNorm makes vectors of length √dim
	}
	for ; len(x) > 0; x = x[dim:] {
		simd.RMSNorm(x[:dim], x[:dim], weights[:dim], 1e-6/float32(dim))
	}
}

// silu replaces x with x·σ(x).
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

// softplus is ln(1 + e^x); as in PyTorch, it is x above 20.
func softplus(x float32) float32 {
	if x > 20 {
		return x
	}
	e := [1]float32{x}
	simd.Exp(e[:], e[:])
	return simd.Log(1 + e[0])
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
