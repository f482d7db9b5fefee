package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// attendRecord is attention over a forest. Keys and values of its rows, and of rows of earlier passes that are pending, are read
// back from the caches' pages, where the passes left them; committed rows are constants.
type attendRecord struct {
	stored
	layer int
	out   Mat
	seen  [][]*stored // per sequence, the rows of earlier passes that are in its cache, pending
}

// keepAttention notes attention for the tape, before queries and keys are overwritten.
func (t *Tape) keepAttention(a *Attention, layer int, f *Forest, qkv, out Mat) {
	r := &attendRecord{stored: stored{rotated: t.keepRotated(a, f, qkv, a.Heads)}, layer: layer, out: out, seen: make([][]*stored, len(f.segs))}
	for i := range f.segs {
		r.seen[i] = t.seenBy(&f.segs[i], layer)
	}
	t.store(&r.stored, layer)
	t.record(r)
}

// backward computes, per head and with P the weights, S the scores and s the scale,
//
//	dV = Pᵀ·dO    dP = dO·Vᵀ    dS = s·P∘(dP − Σ P∘dP)    dQ = dS·K    dK = dSᵀ·Q
//
// then takes dQ and dK back through rotation and norms. P is computed anew from the scores.
func (r *attendRecord) backward(t *Tape) {
	slab, used := t.arena.mark()
	defer t.arena.release(slab, used)
	a := r.a
	d := t.plain(r.rows.Rows, r.rows.Cols) // the gradient by rotated queries, keys, and values
	heads := make([]attendGrad, t.exec.pool.Threads())
	each(t.exec.pool, len(r.f.segs)*a.KVHeads, func(worker, task int) {
		heads[worker].run(r, task/a.KVHeads, task%a.KVHeads, d)
	})
	if r.d.Data != nil {
		t.exec.add(d.Columns(a.Heads*a.Dim, d.Cols), r.d)
	}
	r.rotated.backward(t, d)
}

// attendGrad is one worker's memory for the gradient of one key/value head of one sequence.
type attendGrad struct {
	k, vt    []float32 // per page: keys as rows (32 × dim), values transposed (dim × 32)
	dk, dv   []float32 // per slot
	q, do    []float32 // a block of queries and the gradient of their outputs
	dq       []float32
	p, dp    []float32 // their weights and those's gradient: queries × columns
	pt, dst  []float32 // a page of each, transposed
	gather   []float32
	pages    []int // those that some row of the block sees
	column   []int // per page of the cache, its first column, or −1
	n, width int   // queries of the block, columns
}

// gradQueries is the number of queries in a block of the backward pass.
const gradQueries = 32

func (g *attendGrad) run(r *attendRecord, seg, head int, d Mat) {
	s := &r.f.segs[seg]
	a, dim := r.a, r.a.Dim
	group := a.Heads / a.KVHeads
	pages := pagesFor(s.slots())
	size := dim * PageRows
	g.k, g.vt = grow(g.k, pages*size), grow(g.vt, pages*size)
	g.dk, g.dv = grow(g.dk, pages*size), grow(g.dv, pages*size)
	clear(g.dk)
	clear(g.dv)
	for p := range pages {
		transpose(g.k[p*size:], dim, Mat{Rows: dim, Cols: PageRows, Stride: PageRows, Data: s.cache.keys(r.layer, head, p)})
		transpose(g.vt[p*size:], PageRows, Mat{Rows: PageRows, Cols: dim, Stride: dim, Data: s.cache.values(r.layer, head, p)})
	}
	block := max(1, gradQueries/group)
	for from := 0; from < s.rows; from += block {
		g.block(r, s, head, from, min(from+block, s.rows), d)
	}
	kv := a.Heads*dim + head*dim
	for i := range s.rows {
		row, slot := d.Row(s.row+i), (s.base+s.from+i)*dim
		copy(row[kv:kv+dim], g.dk[slot:])
		copy(row[kv+a.KVHeads*dim:][:dim], g.dv[slot:slot+dim])
	}
	for _, k := range r.seen[seg] {
		k.add(s, head, g.dk[s.base*dim:], g.dv[s.base*dim:])
	}
}

// block takes rows [from, to) of the sequence.
func (g *attendGrad) block(r *attendRecord, s *segment, head, from, to int, d Mat) {
	a, dim := r.a, r.a.Dim
	group := a.Heads / a.KVHeads
	rows := r.f.rows[s.row+from : s.row+to]
	n := len(rows) * group
	dout, _ := r.out.Grad()
	g.q = grow(g.q, n*dim)
	g.do = grow(g.do, n*dim)
	g.dq = grow(g.dq, n*dim)
	for i := range rows {
		o := head * group * dim
		copy(g.q[i*group*dim:(i+1)*group*dim], r.rows.Row(s.row + from + i)[o:])
		copy(g.do[i*group*dim:(i+1)*group*dim], dout.Row(s.row + from + i)[o:])
	}
	clear(g.dq)
	g.see(r.f, s, rows)
	w := len(g.pages) * PageRows
	g.n, g.width = n, w
	g.p, g.dp = grow(g.p, n*w), grow(g.dp, n*w)
	size := dim * PageRows
	for c, p := range g.pages {
		simd.Scores(g.p[c*PageRows:], w, g.q, dim, n, dim, s.cache.keys(r.layer, head, p))
		simd.Scores(g.dp[c*PageRows:], w, g.do, dim, n, dim, g.vt[p*size:(p+1)*size])
	}
	scale := float32(1 / math.Sqrt(float64(dim)))
	for i, row := range rows {
		for h := range group {
			q := i*group + h
			p, dp := g.p[q*w:(q+1)*w], g.dp[q*w:(q+1)*w]
			g.mask(p, s, row, r.f.rest[row.from:row.to])
			simd.Softmax(p, scale)
			var dot float32
			for j, v := range p {
				dot += v * dp[j]
			}
			for j, v := range p {
				dp[j] = v * (dp[j] - dot) * scale
			}
		}
	}
	g.pt, g.dst = grow(g.pt, PageRows*n), grow(g.dst, PageRows*n)
	for c, p := range g.pages {
		simd.Mix(g.dq, dim, g.dp[c*PageRows:], w, n, dim, PageRows, g.k[p*size:(p+1)*size])
		transpose(g.pt, n, Mat{Rows: n, Cols: PageRows, Stride: w, Data: g.p[c*PageRows:]})
		simd.Mix(g.dv[p*size:], dim, g.pt, n, PageRows, dim, n, g.do)
		transpose(g.dst, n, Mat{Rows: n, Cols: PageRows, Stride: w, Data: g.dp[c*PageRows:]})
		simd.Mix(g.dk[p*size:], dim, g.dst, n, PageRows, dim, n, g.q)
	}
	for i := range rows {
		copy(d.Row(s.row + from + i)[head*group*dim:], g.dq[i*group*dim:(i+1)*group*dim])
	}
}

// see lists the pages that some row of the block sees. A branch sees the trunk up to its
// anchor and its own few rows: the pages between are of no concern to it.
func (g *attendGrad) see(f *Forest, s *segment, rows []forestRow) {
	pages := pagesFor(s.slots())
	g.column = append(g.column[:0], make([]int, pages)...)
	for _, row := range rows {
		for p := range pagesFor(s.base + row.prefix) {
			g.column[p] = 1
		}
		for _, v := range f.rest[row.from:row.to] {
			g.column[(s.base+int(v))/PageRows] = 1
		}
	}
	g.pages = g.pages[:0]
	for p, seen := range g.column {
		g.column[p] = -1
		if seen != 0 {
			g.column[p] = len(g.pages) * PageRows
			g.pages = append(g.pages, p)
		}
	}
}

// mask sets the scores of slots that the row does not see to −∞.
func (g *attendGrad) mask(x []float32, s *segment, row forestRow, rest []int32) {
	g.gather = grow(g.gather, len(rest))
	at := func(slot int) int { return g.column[slot/PageRows] + slot%PageRows }
	for t, v := range rest {
		g.gather[t] = x[at(s.base+int(v))]
	}
	// The prefix's pages are all listed, so its slots are the first columns.
	hidden := x[s.base+row.prefix:]
	for j := range hidden {
		hidden[j] = float32(math.Inf(-1))
	}
	for t, v := range rest {
		x[at(s.base+int(v))] = g.gather[t]
	}
}
