package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// Attention is multi-head attention with grouped queries: Heads/KVHeads neighbouring query
// heads share a key/value head.
type Attention struct {
	Heads, KVHeads, Dim int
	QNorm, KNorm        *Norm // nil: none; per head (Qwen3), or across all heads (OLMo 2) where there are as many weights
	OwnNorms            bool  // norms are per head, and each head has weights of its own (Command R+)
	VNorm               *Norm // of each head's values; nil: none
	NormLast            bool  // queries and keys are normalised after rotation (Hunyuan)
	Rope                *Rope // nil: positions are not rotated in
	Reads               bool  // keys and values come from another layer (Pages.Sources): rows have only queries

	Scale  float32 // of scores; 0: 1/√Dim
	Cap    float32 // a scaled score s becomes Cap·tanh(s/Cap) (Gemma 2); 0: none
	Clip   float32 // queries, keys and values are bounded by ±Clip before norms and rotation (OLMo 1); 0: not
	Window int     // the number of positions a row sees, including its own; 0: all before it
	Chunks bool    // a row sees only positions of its own chunk, which are Window long (Llama 4)
	Temper Temper  // of queries
	// the results of a head are multiplied by σ of gates, which have their own product (Trinity),
	// or follow each head's queries in the product of the queries (Qwen 3.5)
	Gated bool
	// the gates, of a head or of each of its dimensions, are softplus of their product (Laguna)
	SoftplusGates bool
	ValueDim      int // the width of a head's values, narrower than Dim (MiMo-V2); 0: Dim
	// values are the first Latent dimensions of the key, and the others are rotated: rows have only
	// queries and keys; 0: values are separate
	Latent int
	Sinks  []float32 // for each head: an extra score that shares every row's weights (gpt-oss); nil: none
}

// Temper scales queries by their position p: by 1 + Scale·ln(1 + ⌊(p + First)/Length⌋) (Llama 4,
// whose positions begin with 1 here, and Ministral 3). The zero value leaves them unchanged.
type Temper struct {
	Scale         float32
	Length, First int
}

// at returns the factor at a position.
func (t Temper) at(position int) float32 {
	if t.Scale == 0 {
		return 1
	}
	return 1 + float32(t.Scale*simd.Log(float32(1+(position+t.First)/t.Length)))
}

// scale is the factor of the scores.
func (a *Attention) scale() float32 {
	if a.Scale != 0 {
		return a.Scale
	}
	return float32(1 / math.Sqrt(float64(a.Dim)))
}

// normsAll reports whether norms are taken across all heads.
func (a *Attention) normsAll() bool {
	return a.QNorm != nil && len(a.QNorm.Weight) > a.Dim && !a.OwnNorms
}

// normaliseAll normalises queries and keys where norms are taken across all heads.
func (e *Exec) normaliseAll(a *Attention, qkv Mat) {
	if a.normsAll() {
		q, k := qkv.Columns(0, a.Heads*a.Dim), qkv.Columns(a.Heads*a.Dim, (a.Heads+a.KVHeads)*a.Dim)
		e.Normalise(a.QNorm, q, q)
		e.Normalise(a.KNorm, k, k)
	}
}

// QKVCols is the width of the rows that Attend reads: queries, keys, values.
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
// A row's scores are weighed in the order of positions, wherever its keys are stored: committed
// rows, then its ancestors. Values are summed in the order of slots, which is also that of
// positions; slots in between that the row does not see have weight 0, and adding a product with 0
// changes no sum. Both proceed by ranges of positions (attend.go). The result is therefore the same
// to the bit for any tree, chunking or batch around the row.
func (e *Exec) Attend(a *Attention, layer int, f *Forest, qkv, out Mat) {
	if e.records != nil {
		e.records.Attend(a, layer, f, qkv, out)
	}
	e.store(a, layer, f, qkv, a.Heads)
	e.attend(a, layer, f, qkv, out, nil)
	e.run()
}

// attend plans the attention of rows that are already stored, into out or, if in is not nil, into an intake.
func (e *Exec) attend(a *Attention, layer int, f *Forest, qkv, out Mat, in *Intake) {
	j := e.attending(a, layer, f, qkv, out)
	j.in = in
	j.plan()
}

// attending prepares an attendJob, with blocks large enough to walk the keys and values efficiently.
func (e *Exec) attending(a *Attention, layer int, f *Forest, qkv, out Mat) *attendJob {
	group := a.Heads / a.KVHeads
	j := e.plan.attends.next(&e.plan)
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
			pages += pagesFor(g.From+g.Rows) + 1 // ancestors are among the tree's rows
		}
		width = max(width, (min(pages, pagesFor(g.Slots()))+2)*PageRows)
		dims = max(dims, g.Cache.mem.shapeOf(layer).resultWidth())
	}
	n := j.block * group
	// leave room for texts to grow
	e.grow(scratchSizes{queries: n, results: n * dims, scores: n * width, gather: rest, slots: slots + 32*PageRows})
	return j
}

// Keys puts the keys and values of rows that are never queries into their caches, as pending rows.
// kv is n × 2·KVHeads·Dim, keys before values; its keys are normalised and rotated in place. This
// is how a block head reads a target's states of the text (JetSpec §2.2). Rows of a later Attend
// over the same caches see them as nodes of their trees before From.
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
