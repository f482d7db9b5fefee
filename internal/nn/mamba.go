package nn

import "github.com/grovellm/grove/internal/kernels/simd"

// Mamba is a layer of Mamba-2 (arXiv 2405.21060). For each head, with a value x, and a key B and a
// query C that it shares with the heads of its group, Δ = softplus(dt + Bias):
//
//	S ← e^(A·Δ)·S + Δ·B·xᵀ    o = SᵀC + Skip·x    y = Norm(o·SiLU(z))
//
// S is StateDim × HeadDim. The rows of In are z, x, B, C and dt.
type Mamba struct {
	In            Linear
	Conv          Convolution // of x, B and C, then SiLU
	A, Bias, Skip []float32   // of each head
	Norm          Norm        // of the results of a group's heads; it has the weights of all groups; without weights: none

	Heads, Groups, HeadDim, StateDim int // neighbouring heads make a group
}

func (d *Mamba) values() int   { return d.Heads * d.HeadDim }
func (d *Mamba) channels() int { return d.values() + 2*d.Groups*d.StateDim }

func (d *Mamba) heads() outerHeads {
	return outerHeads{keyHeads: d.Groups, heads: d.Heads, keyDim: d.StateDim, dim: d.HeadDim, grouped: true,
		keys: d.values(), queries: d.values() + d.Groups*d.StateDim}
}

func (d *Mamba) Shape() *RecurrentShape { h := d.heads(); return h.shape(&d.Conv) }

func (d *Mamba) Bytes() int { return d.In.W.Bytes() }

func (d *Mamba) mix(e *Exec, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	n, b := src.X.Rows, &m.delta
	values, channels := d.values(), d.channels()
	all, mixed := e.Mat(&b.in, n, values+channels+d.Heads), e.Mat(&b.mixed, n, channels)
	gates, y := e.Mat(&b.gates, n, 2*d.Heads), e.Mat(&b.out, n, values)
	e.Linear(src, Proj{Linear: &d.In, Dst: all})
	j := e.plan.mambas.next(&e.plan)
	*j = mambaJob{d: d, z: all.Columns(0, values), dt: all.Columns(values+channels, values+channels+d.Heads),
		outerJob: outerJob{e: e, outerHeads: d.heads(), layer: layer, f: f, mixed: mixed, gates: gates, skip: d.Skip, y: y}}
	e.outer(&j.outerJob, convolveJob{conv: &d.Conv, x: all.Columns(values, values+channels), next: j})
	e.OwnRows(n, values, (*mambaOutput)(j))
	e.Linear(Source{X: y}, out)
}

// mambaJob is a layer's part of a pass. Its gates are A·Δ and Δ.
type mambaJob struct {
	outerJob
	d     *Mamba
	z, dt Mat
}

// rowDone makes values, keys, queries and gates from row i's convolution, and stores the keys.
func (j *mambaJob) rowDone(_, i int) {
	silu(j.mixed.Row(i))
	j.storeKeys(i)
	gates := j.gates.Row(i)
	for h, dt := range j.dt.Row(i) {
		step := softplus(dt + j.d.Bias[h])
		gates[h] = j.d.A[h] * step
		gates[j.d.Heads+h] = step
	}
}

// mambaOutput multiplies the results by SiLU of z and normalises them.
type mambaOutput mambaJob

func (j *mambaOutput) Do(_, i int) {
	y := j.y.Row(i)
	simd.SiLUMul(y, j.z.Row(i), y)
	norm := &j.d.Norm
	if norm.Weight == nil {
		return
	}
	for at, n := 0, len(y)/j.d.Groups; at < len(y); at += n {
		simd.RMSNorm(y[at:at+n], y[at:at+n], norm.Weight[at:at+n], norm.Eps)
	}
}
