package autograd

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

// attendRecord is attention over a forest. Keys and values of its rows, and of pending rows of
// earlier passes, are read back from the caches' pages, where the passes left them; committed rows
// are constants.
type attendRecord struct {
	stored
	layer int
	out   nn.Mat
	seen  [][]*stored // per sequence, the pending rows of earlier passes in its cache
}

func (t recorder) Attend(a *nn.Attention, layer int, f *nn.Forest, qkv, out nn.Mat) {
	if what := attentionWithout(a); what != "" {
		panic("autograd: no gradient of " + what)
	}
	segments := f.Segments()
	r := &attendRecord{stored: stored{rotated: t.keepRotated(a, f, qkv, a.Heads)}, layer: layer, out: out,
		seen: make([][]*stored, len(segments))}
	for i := range segments {
		r.seen[i] = t.seenBy(&segments[i], layer)
	}
	t.store(&r.stored, layer)
	t.record(r)
}

// Without names the part of a layer that has no gradient; it returns "" if all have one.
func Without(b *nn.Block) string {
	switch {
	case b.Recurrent != nil || b.ParallelRecurrent != nil:
		return "recurrent layers"
	case b.Experts != nil:
		return "experts"
	case b.Latent != nil:
		return "latent attention"
	case b.Attn.Gated:
		return "attention with gates"
	case b.Out.W == nil || b.MLP.Up.W == nil:
		return "layers of attention or an MLP alone"
	case b.PerLayer != nil || b.OutScale != 0 || b.OutNorm != nil:
		return "layers that scale or normalise what they put out, or read a table of their own"
	case b.MLP.Act != nn.None:
		return "MLPs with an activation other than SiLU with a gate and GELU without"
	}
	return attentionWithout(&b.Attn)
}

// attentionWithout is Without for attention.
func attentionWithout(a *nn.Attention) string {
	switch {
	case a.Rope == nil:
		return "attention without rotation"
	case a.Window != 0:
		return "attention with a window"
	case a.Cap != 0:
		return "attention with a cap of its scores"
	case a.Clip != 0:
		return "attention with bounds of queries, keys and values"
	case a.Scale != 0:
		return "attention with a scale of its own"
	case a.Temper.Scale != 0:
		return "attention with a temperature by position"
	case a.Sinks != nil:
		return "attention with sinks"
	case a.NormLast || a.VNorm != nil:
		return "attention with norms of values, or after rotation"
	case a.QNorm != nil && len(a.QNorm.Weight) > a.Dim || a.OwnNorms:
		return "attention with norms of all heads together, or of each on its own"
	}
	return ""
}

// backward computes, per head and with P the weights, S the scores and s the scale,
//
//	dV = Pᵀ·dO    dP = dO·Vᵀ    dS = s·P∘(dP − Σ P∘dP)    dQ = dS·K    dK = dSᵀ·Q
//
// then takes dQ and dK back through rotation and norms. P is recomputed from the scores.
func (r *attendRecord) backward(t *Tape) {
	defer t.arena.release(t.arena.mark())
	a := r.a
	d := t.plain(r.rows.Rows, r.rows.Cols) // the gradient with respect to rotated queries, keys, and values
	heads := make([]attendGrad, t.exec.Threads())
	each(t.pool(), len(r.f.Segments())*a.KVHeads, func(worker, task int) {
		heads[worker].run(r, task/a.KVHeads, task%a.KVHeads, d)
	})
	if r.d.Data != nil {
		t.add(d.Columns(a.Heads*a.Dim, d.Cols), r.d)
	}
	r.rotated.backward(t, d)
}

// attendGrad is one worker's memory for the gradient of one key/value head of one sequence.
type attendGrad struct {
	k, vt   []float32 // per page: keys as rows (32 × dim), values transposed (dim × 32)
	dk, dv  []float32 // per slot
	q, do   []float32 // a block of queries and the gradient of their outputs
	dq      []float32
	p, dp   []float32 // their weights and the weights' gradient: queries × columns
	pt, dst []float32 // a page of each, transposed
	gather  []float32
	pages   []int // those that at least one row of the block sees
	column  []int // per page of the cache, its first column, or −1
}

// gradQueries is the number of queries in a block of the backward pass.
const gradQueries = 32

func (g *attendGrad) run(r *attendRecord, seg, head int, d nn.Mat) {
	s := &r.f.Segments()[seg]
	a, dim := r.a, r.a.Dim
	group := a.Heads / a.KVHeads
	pages := pagesFor(s.Slots())
	size := dim * nn.PageRows
	g.k, g.vt = grow(g.k, pages*size), grow(g.vt, pages*size)
	g.dk, g.dv = grow(g.dk, pages*size), grow(g.dv, pages*size)
	clear(g.dk)
	clear(g.dv)
	for p := range pages {
		transpose(g.k[p*size:], dim, nn.Mat{Rows: dim, Cols: nn.PageRows, Stride: nn.PageRows,
			Data: s.Cache.Keys(r.layer, head, p)})
		transpose(g.vt[p*size:], nn.PageRows, nn.Mat{Rows: nn.PageRows, Cols: dim, Stride: dim,
			Data: s.Cache.Values(r.layer, head, p)})
	}
	block := max(1, gradQueries/group)
	for from := 0; from < s.Rows; from += block {
		g.block(r, s, head, from, min(from+block, s.Rows), d)
	}
	kv := a.Heads*dim + head*dim
	for i := range s.Rows {
		row, slot := d.Row(s.Row+i), (s.Base+s.From+i)*dim
		copy(row[kv:kv+dim], g.dk[slot:])
		copy(row[kv+a.KVHeads*dim:][:dim], g.dv[slot:slot+dim])
	}
	for _, k := range r.seen[seg] {
		k.add(s, head, g.dk[s.Base*dim:], g.dv[s.Base*dim:])
	}
}

// block processes rows [from, to) of the sequence.
func (g *attendGrad) block(r *attendRecord, s *nn.Segment, head, from, to int, d nn.Mat) {
	a, dim := r.a, r.a.Dim
	group := a.Heads / a.KVHeads
	rows := to - from
	first := s.Row + from
	n := rows * group
	dout, _ := Grad(r.out)
	g.q = grow(g.q, n*dim)
	g.do = grow(g.do, n*dim)
	g.dq = grow(g.dq, n*dim)
	for i := range rows {
		o := head * group * dim
		copy(g.q[i*group*dim:(i+1)*group*dim], r.rows.Row(first + i)[o:])
		copy(g.do[i*group*dim:(i+1)*group*dim], dout.Row(first + i)[o:])
	}
	clear(g.dq)
	g.see(r.f, s, first, rows)
	w := len(g.pages) * nn.PageRows
	g.p, g.dp = grow(g.p, n*w), grow(g.dp, n*w)
	size := dim * nn.PageRows
	for c, p := range g.pages {
		simd.Scores(g.p[c*nn.PageRows:], w, g.q, dim, n, dim, s.Cache.Keys(r.layer, head, p))
		simd.Scores(g.dp[c*nn.PageRows:], w, g.do, dim, n, dim, g.vt[p*size:(p+1)*size])
	}
	scale := float32(1 / math.Sqrt(float64(dim)))
	for i := range rows {
		_, prefix, rest := r.f.Row(first + i)
		for h := range group {
			q := i*group + h
			p, dp := g.p[q*w:(q+1)*w], g.dp[q*w:(q+1)*w]
			g.mask(p, s.Base, prefix, rest)
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
	g.pt, g.dst = grow(g.pt, nn.PageRows*n), grow(g.dst, nn.PageRows*n)
	for c, p := range g.pages {
		simd.Mix(g.dq, dim, g.dp[c*nn.PageRows:], w, n, dim, nn.PageRows, g.k[p*size:(p+1)*size])
		transpose(g.pt, n, nn.Mat{Rows: n, Cols: nn.PageRows, Stride: w, Data: g.p[c*nn.PageRows:]})
		simd.Mix(g.dv[p*size:], dim, g.pt, n, nn.PageRows, dim, n, g.do)
		transpose(g.dst, n, nn.Mat{Rows: n, Cols: nn.PageRows, Stride: w, Data: g.dp[c*nn.PageRows:]})
		simd.Mix(g.dk[p*size:], dim, g.dst, n, nn.PageRows, dim, n, g.q)
	}
	for i := range rows {
		copy(d.Row(first + i)[head*group*dim:], g.dq[i*group*dim:(i+1)*group*dim])
	}
}

// see lists the pages that the given number of rows, counted from the first of a block, see. A branch
// sees the text up to its anchor and its own few rows: it does not need the pages in between.
func (g *attendGrad) see(f *nn.Forest, s *nn.Segment, first, rows int) {
	pages := pagesFor(s.Slots())
	g.column = append(g.column[:0], make([]int, pages)...)
	for i := range rows {
		_, prefix, rest := f.Row(first + i)
		for p := range pagesFor(s.Base + prefix) {
			g.column[p] = 1
		}
		for _, v := range rest {
			g.column[(s.Base+int(v))/nn.PageRows] = 1
		}
	}
	g.pages = g.pages[:0]
	for p, seen := range g.column {
		g.column[p] = -1
		if seen != 0 {
			g.column[p] = len(g.pages) * nn.PageRows
			g.pages = append(g.pages, p)
		}
	}
}

// mask sets the scores of slots that a row does not see to −∞. The row sees the base, prefix nodes after it, and rest.
func (g *attendGrad) mask(x []float32, base, prefix int, rest []int32) {
	g.gather = grow(g.gather, len(rest))
	at := func(slot int) int { return g.column[slot/nn.PageRows] + slot%nn.PageRows }
	for t, v := range rest {
		g.gather[t] = x[at(base+int(v))]
	}
	// The prefix's pages are all listed, so its slots are the first columns.
	hidden := x[base+prefix:]
	for j := range hidden {
		hidden[j] = float32(math.Inf(-1))
	}
	for t, v := range rest {
		x[at(base+int(v))] = g.gather[t]
	}
}

// pagesFor returns the number of a cache's pages that n rows take.
func pagesFor(n int) int { return (n + nn.PageRows - 1) / nn.PageRows }
