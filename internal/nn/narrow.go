package nn

// narrowAttention is attention whose values are narrower than keys. Caches keep them as wide, with zeros behind
// them, so that pages have one width; the results' zeros are left out before Out.
func (e *Exec) narrowAttention(b *Block, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	if e.records != nil {
		panic("nn: attention with narrow values has no gradient: it can be a target's, not a head's or a trained model's")
	}
	a, n := &b.Attn, src.X.Rows
	queries, keys := a.Heads*a.Dim, a.KVHeads*a.Dim
	qkv, attn := e.mat(&m.qkv, n, a.QKVCols(), m.widest.qkv), e.mat(&m.attn, n, queries, m.widest.attn)
	values := e.mat(&m.gated, n, a.KVHeads*a.ValueDim, m.widest.qkv)
	results := e.mat(&m.mixed, n, a.Heads*a.ValueDim, m.widest.attn)
	e.Linear(src, Proj{Linear: &b.QKV[0], Dst: qkv.Columns(0, queries)},
		Proj{Linear: &b.QKV[1], Dst: qkv.Columns(queries, queries+keys)}, Proj{Linear: &b.QKV[2], Dst: values})
	widen, narrow := e.plan.widths.next(&e.plan), e.plan.widths.next(&e.plan)
	*widen = widthJob{values, qkv.Columns(queries+keys, queries+2*keys), a.KVHeads}
	*narrow = widthJob{attn, results, a.Heads}
	e.OwnRows(n, keys, widen)
	e.plan.open = nil // all keys and values must be stored before any row attends
	e.Attend(a, layer, f, qkv, attn)
	e.OwnRows(n, results.Cols, narrow)
	e.Linear(Source{X: results}, out)
}

// widthJob copies rows of heads to heads of another width: zeros are added, or what lies behind is left out.
type widthJob struct {
	from, to Mat
	heads    int
}

func (j *widthJob) Do(_, i int) {
	from, to := j.from.Row(i), j.to.Row(i)
	n, wide := len(from)/j.heads, len(to)/j.heads
	for h := range j.heads {
		at := to[h*wide:][:wide]
		clear(at[copy(at, from[h*n:][:n]):])
	}
}
