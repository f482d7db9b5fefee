package autograd

import (
	"slices"

	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

// rotated is rows of query heads, keys and values as they entered the caches: queries and keys
// normalised and rotated in place.
type rotated struct {
	a     *nn.Attention
	f     *nn.Forest
	heads int // query heads in the rows: those of the attention, or none
	rows  nn.Mat
	raw   nn.Mat // queries and keys before their norms, where there are any
}

func (t *Tape) keepRotated(a *nn.Attention, f *nn.Forest, rows nn.Mat, heads int) rotated {
	for _, s := range f.Segments() {
		if kv := s.Cache.Pages().KV; kv != nn.KVAuto && kv != nn.KVF32 {
			panic("autograd: a gradient through a cache that rounds: its Pages want KVF32")
		}
	}
	r := rotated{a: a, f: f, heads: heads, rows: rows}
	if a.QNorm != nil || a.KNorm != nil {
		r.raw = t.plain(rows.Rows, (heads+a.KVHeads)*a.Dim)
		t.copyRows(r.raw, rows)
	}
	return r
}

// backward takes d, the gradient by rotated, normalised queries and keys, and by values, to the original rows.
func (r *rotated) backward(t *Tape, d nn.Mat) {
	a := r.a
	dst, _ := Grad(r.rows)
	var sums [4][]float32
	for i, n := range []*nn.Norm{a.QNorm, a.KNorm} {
		if n != nil {
			sums[2*i], sums[2*i+1] = t.gradOf(n.Weight), t.gradOf(n.Bias)
		}
	}
	t.rowsInto(d.Rows, sums[:], func(from, to int, part [][]float32) {
		for i := from; i < to; i++ {
			position, _, _ := r.f.Row(i)
			g, out := d.Row(i), dst.Row(i)
			v := (r.heads + a.KVHeads) * a.Dim
			a.Rope.RotateBack(g[:v], a.Dim, position)
			for h := range r.heads + a.KVHeads {
				at := h * a.Dim
				x := g[at : at+a.Dim]
				norm, k := a.QNorm, 0
				if h >= r.heads {
					norm, k = a.KNorm, 2
				}
				if norm == nil {
					simd.Add(out[at:at+a.Dim], x)
					continue
				}
				normBackward(norm, out[at:at+a.Dim], x, r.raw.Row(i)[at:at+a.Dim], part[k], part[k+1])
			}
			simd.Add(out[v:], g[v:])
		}
	})
}

// stored is rows whose keys and values were put into caches, where the attention of later passes may see them.
type stored struct {
	rotated
	d nn.Mat // the gradient with respect to rotated keys, and to values, from later passes; empty if no pass saw them
}

// cached is a layer of a cache.
type cached struct {
	cache *nn.Cache
	layer int
}

// store lists rows under the caches that hold them, in place of the rows that they overwrote there.
func (t *Tape) store(r *stored, layer int) {
	for _, own := range r.f.Segments() {
		at := cached{own.Cache, layer}
		t.stored[at] = append(slices.DeleteFunc(t.stored[at], func(o *stored) bool {
			return o.segment(own.Cache).From >= own.From
		}), r)
	}
}

// seenBy lists the rows of earlier passes that a sequence's rows may see, and makes room for their gradients.
func (t *Tape) seenBy(s *nn.Segment, layer int) []*stored {
	var seen []*stored
	for _, r := range t.stored[cached{s.Cache, layer}] {
		if r.segment(s.Cache).From >= s.From {
			continue
		}
		if r.d.Data == nil {
			r.d = t.plain(r.rows.Rows, 2*r.a.KVHeads*r.a.Dim)
			clear(r.d.Data)
		}
		seen = append(seen, r)
	}
	return seen
}

// segment returns the part of the rows that went to a cache.
func (r *stored) segment(c *nn.Cache) *nn.Segment {
	for i, s := range r.f.Segments() {
		if s.Cache == c {
			return &r.f.Segments()[i]
		}
	}
	panic("autograd: rows of another cache") // store lists rows under their own
}

// add takes the gradient of one head with respect to the rows of a sequence that s's rows saw
// before themselves: dk and dv hold Dim numbers for each.
func (r *stored) add(s *nn.Segment, head int, dk, dv []float32) {
	dim, own := r.a.Dim, r.segment(s.Cache)
	for j := range min(own.Rows, s.From-own.From) {
		g, at := r.d.Row(own.Row+j), (own.From+j)*dim
		simd.Add(g[head*dim:(head+1)*dim], dk[at:at+dim])
		simd.Add(g[(r.a.KVHeads+head)*dim:][:dim], dv[at:at+dim])
	}
}

// keysRecord is keys and values of rows that are not queries.
type keysRecord struct{ stored }

func (t recorder) Keys(a *nn.Attention, layer int, f *nn.Forest, kv nn.Mat) {
	r := &keysRecord{stored{rotated: t.keepRotated(a, f, kv, 0)}}
	t.store(&r.stored, layer)
	t.record(r)
}

func (r *keysRecord) backward(t *Tape) {
	if r.d.Data != nil {
		r.rotated.backward(t, r.d)
	}
}
