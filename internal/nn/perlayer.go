package nn

import "github.com/grovellm/grove/internal/kernels/simd"

// PerLayer is the last part of a block, for which a table has a row for each token (Gemma 4): x +=
// norm(Proj·(gelu(Gate·x) · row)).
type PerLayer struct {
	Gate, Proj Linear
	Norm       Norm
}

// Bytes is the size of the packed weights.
func (p *PerLayer) Bytes() int { return p.Gate.W.Bytes() + p.Proj.W.Bytes() }

func (e *Exec) perLayer(b *Block, layer int, x Mat, m *BlockBuffers) {
	p := b.PerLayer
	width := p.Gate.W.Out()
	gate, out := e.Mat(&m.perLayerGate, x.Rows, width), e.Mat(&m.out, x.Rows, x.Cols)
	e.Linear(Source{X: x}, Proj{Linear: &p.Gate, Dst: gate})
	rows := m.PerLayer.Columns(layer*width, (layer+1)*width)
	e.Linear(Source{X: gate, Act: GELUMul, Up: rows}, Proj{Linear: &p.Proj, Dst: out})
	if b.AltUp != nil {
		all := m.streamMat(e, x, len(b.AltUp.Correct))
		e.streamPhase(streamJob{step: joinPerLayer, x: x, all: all, modes: out, block: b})
		return
	}
	e.addPost(x, out, &p.Norm)
}

// PerLayerTable makes a token's rows for all layers: (norm(Project·x) + the table's row) · Scale. A
// layer's part is as wide as the norm and is normalised by itself.
type PerLayerTable struct {
	Table   Table
	Project Linear
	Norm    Norm
	Scale   float32
}

// PerLayerInputs makes m.PerLayer from tokens and their embeddings x.
func (e *Exec) PerLayerInputs(t *PerLayerTable, tokens []int32, x Mat, m *BlockBuffers) {
	n := t.Project.W.Out()
	m.PerLayer = e.Mat(&m.perLayer, x.Rows, n)
	e.Linear(Source{X: x}, Proj{Linear: &t.Project, Dst: m.PerLayer})
	e.grow(scratchSizes{row: n})
	j := e.plan.inputs.next(&e.plan)
	*j = perLayerJob{e, t, tokens, m.PerLayer}
	e.OwnRows(len(tokens), rowCost*n, j)
}

type perLayerJob struct {
	e      *Exec
	t      *PerLayerTable
	tokens []int32
	dst    Mat
}

func (j *perLayerJob) Do(worker, i int) {
	y := j.dst.Row(i)
	row, width := j.e.scratch[worker].row[:len(y)], len(j.t.Norm.Weight)
	j.t.Table.Row(row, int(j.tokens[i]))
	for at := 0; at < len(y); at += width {
		part := y[at : at+width]
		j.t.Norm.apply(part, part)
	}
	simd.Add(y, row)
	simd.Scale(y, j.t.Scale)
}

// scale multiplies the rows of x.
func (e *Exec) scale(x Mat, factor float32) {
	if e.records != nil {
		panic("nn: a layer whose output is scaled has no gradient")
	}
	j := e.plan.scales.next(&e.plan)
	*j = scaleJob{x, factor}
	e.OwnRows(x.Rows, x.Cols, j)
}

type scaleJob struct {
	x      Mat
	factor float32
}

func (j *scaleJob) Do(_, i int) { simd.Scale(j.x.Row(i), j.factor) }
