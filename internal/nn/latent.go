package nn

import "github.com/grovellm/grove/internal/kernels/gemm"

// Latent is the products of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, §2.1). A
// row keeps a latent vector c and a rotated key, both shared by all heads: together they are the
// key, and c is the value. A head's own keys and values, KeyUp·c and ValueUp·c, are never computed:
// KeyUp is multiplied by the head's query instead, and ValueUp by the mean of the latent vectors.
type Latent struct {
	QueryDown *Linear // of queries, before Query; nil: Query reads Down's input
	QueryNorm *Norm   // between these two
	Query     Linear  // each head's query: KeyDim dimensions that are not rotated, then the rotated ones
	Down      Linear  // the latent vector and the key to be rotated
	Norm      Norm    // of the latent vector

	KeyUp, ValueUp []Linear // of each head: from KeyDim to the latent vector's dimensions, and from these to ValueDim
}

// Bytes is the size of the packed weights.
func (l *Latent) Bytes() int {
	size := l.Query.W.Bytes() + l.Down.W.Bytes()
	if l.QueryDown != nil {
		size += l.QueryDown.W.Bytes()
	}
	for i := range l.KeyUp {
		size += l.KeyUp[i].W.Bytes() + l.ValueUp[i].W.Bytes()
	}
	return size
}

// down returns the weights of Down, or nil if l is nil.
func (l *Latent) down() *gemm.Matrix {
	if l == nil {
		return nil
	}
	return l.Down.W
}

// latentBuffers are the activations of latent attention.
type latentBuffers struct{ down, query, queries, values Buffer }

// latentAttention is attention over latent vectors.
func (e *Exec) latentAttention(b *Block, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	if e.records != nil {
		panic("nn: latent attention has no gradient: it can be a target's, not a head's or a trained model's")
	}
	l, a := b.Latent, &b.Attn
	n := src.X.Rows
	queries, down := e.Mat(&m.latent.queries, n, l.Query.W.Out()), e.Mat(&m.latent.down, n, a.Dim)
	if l.QueryDown == nil {
		e.Linear(src, Proj{Linear: &l.Query, Dst: queries}, Proj{Linear: &l.Down, Dst: down})
	} else {
		query := e.Mat(&m.latent.query, n, l.QueryDown.W.Out())
		e.Linear(src, Proj{Linear: l.QueryDown, Dst: query}, Proj{Linear: &l.Down, Dst: down})
		e.Linear(Source{X: query, Norm: l.QueryNorm}, Proj{Linear: &l.Query, Dst: queries})
	}
	qkv, attn := e.Mat(&m.qkv, n, a.QKVCols()), e.Mat(&m.attn, n, a.Heads*a.Latent)
	j := e.plan.latents.next(&e.plan)
	*j = latentJob{a, &l.Norm, queries, down, qkv}
	e.OwnRows(n, qkv.Cols, j)
	e.perHead(l.KeyUp, queries, queries.Cols/a.Heads, qkv, a.Dim)
	e.Attend(a, layer, f, qkv, attn)
	values := e.Mat(&m.latent.values, n, a.Heads*l.ValueUp[0].W.Out())
	e.perHead(l.ValueUp, attn, a.Latent, values, values.Cols/a.Heads)
	e.Linear(Source{X: values}, out)
}

// LatentKeys is Keys of a layer with latent attention, for rows that come from src.
func (e *Exec) LatentKeys(b *Block, layer int, f *Forest, src Source, m *BlockBuffers) {
	l := b.Latent
	keys := e.Mat(&m.latent.down, src.X.Rows, b.Attn.Dim)
	e.Linear(src, Proj{Linear: &l.Down, Dst: keys})
	c := keys.Columns(0, b.Attn.Latent)
	e.Normalise(&l.Norm, c, c)
	e.Keys(&b.Attn, layer, f, keys)
}

// latentJob makes the key, and the rotated part of the queries, from a row's products.
type latentJob struct {
	a             *Attention
	norm          *Norm
	queries, down Mat
	qkv           Mat // each head's query, then the key
}

func (j *latentJob) Do(_, i int) {
	a := j.a
	q, row := j.queries.Row(i), j.qkv.Row(i)
	rotated, size := a.Dim-a.Latent, len(q)/a.Heads
	for h := range a.Heads {
		copy(row[h*a.Dim+a.Latent:(h+1)*a.Dim], q[(h+1)*size-rotated:])
	}
	down, key := j.down.Row(i), row[a.Heads*a.Dim:]
	j.norm.apply(key[:a.Latent], down[:a.Latent])
	copy(key[a.Latent:], down[a.Latent:])
}

// perHead plans one product per head: for head h, of the columns of src from h·from on, as many as
// it reads, into the columns of dst from h·to on.
func (e *Exec) perHead(w []Linear, src Mat, from int, dst Mat, to int) {
	j := e.plan.heads.next(&e.plan)
	*j = headJob{e, w, src, dst, from, to, max(1, src.Rows/headRows)}
	e.plan.phase(len(w)*j.parts, j)
	e.run()
}

type headJob struct {
	e        *Exec
	w        []Linear
	src, dst Mat
	from, to int
	parts    int // of the rows
}

func (j *headJob) Do(worker, task int) {
	h, part := task/j.parts, task%j.parts
	r0, r1 := j.src.Rows*part/j.parts, j.src.Rows*(part+1)/j.parts
	l, s := &j.w[h], &j.e.scratch[worker]
	x := &s.rounded[0]
	x.Reset(l.W.Type().Activations(), r1-r0, l.W.In())
	for i := range r1 - r0 {
		x.SetRow(i, j.src.Row(r0 + i)[h*j.from:][:l.W.In()])
	}
	a := gemm.Part{X: x, To: r1 - r0, P1: l.W.Panels(), Scratch: &s.products}
	l.part(&a, j.dst.Columns(h*j.to, h*j.to+l.W.Out()).Slice(r0, r1))
}
