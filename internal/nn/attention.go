package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// Attention is multi-head attention with grouped queries: Heads/KVHeads neighbouring query
// heads share a key/value head.
type Attention struct {
	Heads, KVHeads, Dim int
	QNorm, KNorm        *Norm // nil without; per head (Qwen3), or of all heads together (OLMo 2) where weights are as many
	VNorm               *Norm // of each head's values; nil: none
	NormLast            bool  // queries and keys are normalised after they were rotated (Hunyuan)
	Rope                *Rope // nil: positions are not rotated in
	Reads               bool  // keys and values are another layer's (Pages.Sources): rows have queries alone

	Scale  float32 // of scores; 0: 1/√Dim
	Cap    float32 // a scaled score s becomes Cap·tanh(s/Cap) (Gemma 2); 0: none
	Window int     // a row sees so many positions, its own included; 0: all before it
	Temper Temper  // of queries
	// the results of a head are multiplied by σ of gates, which have a product of their own (Trinity), or of which each
	// head's follow its queries in that of the queries (Qwen 3.5)
	Gated bool
	// values are so many of the key's dimensions, the first ones, and the others are rotated: rows
	// have queries and keys alone; 0: values of their own
	Latent int
	Sinks  []float32 // of each head: a score that every row's weights are shared with (gpt-oss); nil: none
}

// Temper makes queries grow with their position p, by 1 + Scale·ln(1 + ⌊p/Length⌋) (Llama 4,
// Ministral 3). The zero value leaves them.
type Temper struct {
	Scale  float32
	Length int
}

// at is the factor at a position.
func (t Temper) at(position int) float32 {
	if t.Scale == 0 {
		return 1
	}
	return 1 + float32(t.Scale*simd.Log(float32(1+position/t.Length)))
}

// scale is what scores are multiplied by.
func (a *Attention) scale() float32 {
	if a.Scale != 0 {
		return a.Scale
	}
	return float32(1 / math.Sqrt(float64(a.Dim)))
}

// normsAll says that norms are of all heads together.
func (a *Attention) normsAll() bool { return a.QNorm != nil && len(a.QNorm.Weight) > a.Dim }

// normaliseAll normalises queries and keys, where norms are of all heads together.
func (e *Exec) normaliseAll(a *Attention, qkv Mat) {
	if a.normsAll() {
		q, k := qkv.Columns(0, a.Heads*a.Dim), qkv.Columns(a.Heads*a.Dim, (a.Heads+a.KVHeads)*a.Dim)
		e.Normalise(a.QNorm, q, q)
		e.Normalise(a.KNorm, k, k)
	}
}

// QKVCols is the width of the rows Attend reads: queries, keys, values.
func (a *Attention) QKVCols() int {
	switch {
	case a.Reads:
		return a.Heads * a.Dim
	case a.Latent > 0:
		return (a.Heads + a.KVHeads) * a.Dim
	}
	return (a.Heads + 2*a.KVHeads) * a.Dim
}

// Attend computes attention of one layer for every row of the forest. qkv is
// n × (Heads+2·KVHeads)·Dim; queries and keys in it are normalised and rotated in place, keys
// and values go to the caches as pending rows. out is n × Heads·Dim.
//
// A row's scores are weighed in position order wherever its keys are stored: committed rows, then
// its ancestors. Values are summed in the order of slots, which is that of positions too; those
// between that the row does not see weigh 0, and a product with 0 changes no sum. Both go by ranges
// of positions (attend.go). The result is therefore the same to the bit for any tree, chunking or
// batch around the row.
func (e *Exec) Attend(a *Attention, layer int, f *Forest, qkv, out Mat) {
	if e.records != nil {
		e.records.Attend(a, layer, f, qkv, out)
	}
	e.store(a, layer, f, qkv, a.Heads)
	e.attend(a, layer, f, qkv, out, nil)
	e.run()
}

// attend plans the attention of rows that are stored, into out or, when it is not nil, an intake.
func (e *Exec) attend(a *Attention, layer int, f *Forest, qkv, out Mat, in *Intake) {
	j := e.attending(a, layer, f, qkv, out)
	j.in = in
	j.plan()
}

// attending readies an attendJob, of blocks as large as walk the keys and values well.
func (e *Exec) attending(a *Attention, layer int, f *Forest, qkv, out Mat) *attendJob {
	group := a.Heads / a.KVHeads
	j := e.plan.attends.next()
	j.e = e
	j.a = a
	j.layer = layer
	j.f = f
	j.qkv = qkv
	j.out = out
	j.in = nil
	j.block = max(1, queryBlock/group)
	slots := 0
	rest := 0
	dims := a.Dim
	width := 0
	for _, r := range f.rows {
		rest = max(rest, r.to-r.from)
	}
	for _, g := range f.segs {
		slots = max(slots, g.Slots())
		pages := rangePages
		if rest > 0 {
			pages += pagesFor(g.From+g.Rows) + 1 // ancestors are among the rows of the tree
		}
		width = max(width, (min(pages, pagesFor(g.Slots()))+2)*PageRows)
		dims = max(dims, g.Cache.mem.shapeOf(layer).resultWidth())
	}
	n := j.block * group
	// texts grow
	e.grow(scratchSizes{queries: n, results: n * dims, scores: n * width, gather: rest, slots: slots + 32*PageRows})
	return j
}

// Keys puts keys and values of rows that are never queries into their caches, as pending rows: kv
// is n × 2·KVHeads·Dim, keys before values; keys in it are normalised and rotated in place. So a
// block head reads what a target made of the text (JetSpec §2.2). Rows of a later Attend over the
// same caches see them as nodes of their trees before From.
func (e *Exec) Keys(a *Attention, layer int, f *Forest, kv Mat) {
	if e.records != nil {
		e.records.Keys(a, layer, f, kv)
	}
	e.store(a, layer, f, kv, 0)
	e.run()
}

// segmentOf returns the sequence that row i belongs to.
func (f *Forest) segmentOf(i int) *Segment {
	lo, hi := 0, len(f.segs)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; f.segs[mid].Row <= i {
			lo = mid
		} else {
			hi = mid
		}
	}
	return &f.segs[lo]
}
