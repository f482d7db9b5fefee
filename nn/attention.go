package nn

import (
	"math"

	"github.com/grovellm/grove/internal/simd"
)

// Attention is multi-head attention with grouped queries: Heads/KVHeads neighbouring query
// heads share a key/value head.
type Attention struct {
	Heads, KVHeads, Dim int
	QNorm, KNorm        *Norm // per head, nil without (Qwen3 has them)
	Rope                *Rope
}

// QKVCols is the width of the rows Attend reads: queries, keys, values.
func (a *Attention) QKVCols() int { return (a.Heads + 2*a.KVHeads) * a.Dim }

// Attend computes attention of one layer for every row of the forest. qkv is
// n × (Heads+2·KVHeads)·Dim; queries and keys in it are normalised and rotated in place, keys
// and values go to the caches as pending rows. out is n × Heads·Dim.
//
// A row's scores are laid out in position order wherever its keys are stored: committed rows,
// then its ancestors. So are the weights when values are summed. The result is therefore the
// same to the bit for any tree, chunking or batch around the row.
func (e *Exec) Attend(a *Attention, layer int, f *Forest, qkv, out Mat) {
	if e.tape != nil {
		e.tape.keepAttention(a, layer, f, qkv, out)
	}
	e.store(a, layer, f, qkv, a.Heads)
	e.attend(a, layer, f, qkv, out, nil)
	e.run()
}

// attend plans the attention of rows that are stored, into out or, when it is not nil, an intake.
func (e *Exec) attend(a *Attention, layer int, f *Forest, qkv, out Mat, in *intake) {
	group := a.Heads / a.KVHeads
	j := e.plan.attends.next()
	j.e, j.a, j.layer, j.f, j.qkv, j.out, j.in = e, a, layer, f, qkv, out, in
	// As many queries as share a walk well, but a task for each worker.
	j.block = max(1, min(queryBlock/group, (len(f.rows)*a.KVHeads+e.Threads()-1)/e.Threads()))
	j.blocks = j.blocks[:0]
	slots, rest := 0, 0
	for _, r := range f.rows {
		rest = max(rest, r.to-r.from)
	}
	for s, g := range f.segs {
		for r := 0; r < g.rows; r += j.block {
			j.blocks = append(j.blocks, attendBlock{s, r, min(r+j.block, g.rows)})
		}
		slots = max(slots, pagesFor(g.base+g.from+g.rows)*PageRows)
	}
	e.grow(scratchSizes{queries: j.block * group * a.Dim, scores: j.block * group * slots, gather: rest * a.Dim})
	e.plan.phase(len(j.blocks)*a.KVHeads, j)
}

// Keys puts keys and values of rows that are never queries into their caches, as pending rows: kv is n × 2·KVHeads·Dim, keys
// before values; keys in it are normalised and rotated in place. So a block head reads what a target made of the text (paper 003
// §2.2). Rows of a later Attend over the same caches see them as nodes of their trees before From; under a tape the
// gradient goes back to kv.
func (e *Exec) Keys(a *Attention, layer int, f *Forest, kv Mat) {
	if e.tape != nil {
		e.tape.keepKeys(a, layer, f, kv)
	}
	e.store(a, layer, f, kv, 0)
	e.run()
}

// segmentOf returns the sequence that row i belongs to.
func (f *Forest) segmentOf(i int) *segment {
	lo, hi := 0, len(f.segs)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; f.segs[mid].row <= i {
			lo = mid
		} else {
			hi = mid
		}
	}
	return &f.segs[lo]
}

// queryBlock is the number of queries (rows × heads of a group) that share one walk over the
// keys and values of a head.
const queryBlock = 16

type attendBlock struct{ seg, from, to int } // rows [from, to) of a sequence

type attendJob struct {
	e        *Exec
	a        *Attention
	layer    int
	f        *Forest
	qkv, out Mat
	in       *intake
	block    int
	blocks   []attendBlock
}

// Do attends for one key/value head and one block of rows.
func (j *attendJob) Do(worker, task int) {
	a, d := j.a, j.a.Dim
	b := j.blocks[task%len(j.blocks)]
	head := task / len(j.blocks) // a worker's tasks are of few heads, those whose keys it stored
	g := &j.f.segs[b.seg]
	rows := j.f.rows[g.row+b.from : g.row+b.to]
	group := a.Heads / a.KVHeads
	n := len(rows) * group // queries: row r's heads are r·group .. r·group+group−1

	// shared is the number of leading slots that all rows of the block see in position order; near is one
	// past those that any of them does. Beyond, rows see single slots from far on, of which last is one past the furthest.
	shared, near := g.base+rows[0].prefix, 0
	far, last := math.MaxInt, 0
	for _, r := range rows {
		shared = min(shared, g.base+r.prefix)
		near = max(near, g.base+r.prefix)
		for _, v := range j.f.rest[r.from:r.to] {
			far = min(far, g.base+int(v))
			last = max(last, g.base+int(v)+1)
		}
	}
	last = max(last, near)

	s := &j.e.scratch[worker]
	q, o := s.queries[:n*d], s.out[:n*d]
	for i := range rows {
		row := j.qkv.Row(g.row + b.from + i)
		copy(q[i*group*d:(i+1)*group*d], row[head*group*d:])
	}
	clear(o)

	stride := pagesFor(last) * PageRows
	w := s.scores[:n*stride]
	for p := 0; p < pagesFor(last); p++ {
		if p >= pagesFor(near) { // a branch far behind its trunk: nobody sees what lies between
			p = max(p, far/PageRows)
		}
		simd.Scores(w[p*PageRows:], stride, q, d, n, d, g.cache.keys(j.layer, head, p))
	}
	scale := float32(1 / math.Sqrt(float64(d)))
	for i, r := range rows {
		rest := j.f.rest[r.from:r.to]
		ordered := g.base + r.prefix
		for h := range group {
			x := w[(i*group+h)*stride:][:stride]
			for t, v := range rest { // bring the scattered ancestors into position order
				s.gather[t] = x[g.base+int(v)]
			}
			copy(x[ordered:], s.gather[:len(rest)])
			simd.Softmax(x[:ordered+len(rest)], scale)
		}
	}

	for p := 0; p*PageRows < shared; p++ {
		simd.Mix(o, d, w[p*PageRows:], stride, n, d, min(PageRows, shared-p*PageRows), g.cache.values(j.layer, head, p))
	}
	for i, r := range rows {
		x, y := w[i*group*stride:], o[i*group*d:][:group*d]
		ordered := g.base + r.prefix
		for slot := shared; slot < ordered; {
			count := min(PageRows-slot%PageRows, ordered-slot)
			simd.Mix(y, d, x[slot:], stride, group, d, count, g.cache.values(j.layer, head, slot/PageRows)[slot%PageRows*d:])
			slot += count
		}
		if rest := j.f.rest[r.from:r.to]; len(rest) > 0 {
			for t, v := range rest {
				copy(s.gather[t*d:], g.value(j.layer, head, g.base+int(v), d))
			}
			simd.Mix(y, d, x[ordered:], stride, group, d, len(rest), s.gather)
		}
		if row := g.row + b.from + i; j.in != nil {
			j.in.part(row, head*group*d, y)
		} else {
			copy(j.out.Row(row)[head*group*d:], y)
		}
	}
}

// value returns the value row in a slot.
func (g *segment) value(layer, head, slot, d int) []float32 {
	return g.cache.values(layer, head, slot/PageRows)[slot%PageRows*d:][:d]
}
