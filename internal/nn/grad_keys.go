package nn

import (
	"slices"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// rotated is rows of some query heads, keys and values as their caches took them in: queries and keys normalised and rotated
// in place.
type rotated struct {
	a     *Attention
	f     *Forest
	heads int // query heads in the rows: those of the attention, or none
	rows  Mat
	raw   Mat // queries and keys before their norms, where there are any
}

func (t *Tape) keepRotated(a *Attention, f *Forest, rows Mat, heads int) rotated {
	for i := range f.segs {
		if f.segs[i].cache.mem.KV == KVBF16 {
			panic("nn: a gradient through a cache of bf16: its Pages want KVF32")
		}
	}
	r := rotated{a: a, f: f, heads: heads, rows: rows}
	if a.QNorm != nil || a.KNorm != nil {
		r.raw = t.plain(rows.Rows, (heads+a.KVHeads)*a.Dim)
		t.copyRows(r.raw, rows)
	}
	return r
}

// backward takes d, the gradient by rotated, normalised queries and keys, and by values, to the rows as they came.
func (r *rotated) backward(t *Tape, d Mat) {
	a := r.a
	rope := a.Rope.view()
	dst, _ := r.rows.Grad()
	var sums [4][]float32
	for i, n := range []*Norm{a.QNorm, a.KNorm} {
		if n != nil {
			sums[2*i], sums[2*i+1] = t.gradOf(n.Weight), t.gradOf(n.Bias)
		}
	}
	t.rowsInto(d.Rows, sums[:], func(from, to int, part [][]float32) {
		sin := make([]float32, len(a.Rope.freq))
		for i := from; i < to; i++ {
			cos, s := rope.at(r.f.rows[i].position)
			for j, v := range s {
				sin[j] = -v // a rotation's transpose is the rotation back
			}
			g, out := d.Row(i), dst.Row(i)
			for h := range r.heads + a.KVHeads {
				at := h * a.Dim
				x := g[at : at+a.Dim]
				rope.rotate(x, cos, sin)
				norm, k := a.QNorm, 0
				if h >= r.heads {
					norm, k = a.KNorm, 2
				}
				if norm == nil {
					simd.Add(out[at:at+a.Dim], x)
					continue
				}
				norm.normBackward(out[at:at+a.Dim], x, r.raw.Row(i)[at:at+a.Dim], part[k], part[k+1])
			}
			v := (r.heads + a.KVHeads) * a.Dim
			simd.Add(out[v:], g[v:])
		}
	})
}

// stored is rows whose keys and values went into caches, where the attention of later passes may see them.
type stored struct {
	rotated
	d Mat // the gradient by rotated keys, and by values, from passes after their own; nothing where no pass saw them
}

// cached is a layer of a cache.
type cached struct {
	cache *Cache
	layer int
}

// store lists rows under the caches they went to, in place of those that they overwrote there.
func (t *Tape) store(r *stored, layer int) {
	for i := range r.f.segs {
		own := &r.f.segs[i]
		at := cached{own.cache, layer}
		t.stored[at] = append(slices.DeleteFunc(t.stored[at], func(o *stored) bool { return o.segment(own.cache).from >= own.from }), r)
	}
}

// seenBy lists the rows of earlier passes that those of a sequence may see, and makes room for their gradients.
func (t *Tape) seenBy(s *segment, layer int) []*stored {
	var seen []*stored
	for _, r := range t.stored[cached{s.cache, layer}] {
		if r.segment(s.cache).from >= s.from {
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

// segment is the rows' part that went to a cache.
func (r *stored) segment(c *Cache) *segment {
	for i := range r.f.segs {
		if r.f.segs[i].cache == c {
			return &r.f.segs[i]
		}
	}
	panic("nn: rows of another cache") // store lists rows under their own
}

// add takes the gradient of one head by the rows of a sequence that s's rows saw before themselves: dk and dv hold Dim numbers
// for each.
func (r *stored) add(s *segment, head int, dk, dv []float32) {
	dim, own := r.a.Dim, r.segment(s.cache)
	for j := range min(own.rows, s.from-own.from) {
		g, at := r.d.Row(own.row+j), (own.from+j)*dim
		simd.Add(g[head*dim:(head+1)*dim], dk[at:at+dim])
		simd.Add(g[(r.a.KVHeads+head)*dim:][:dim], dv[at:at+dim])
	}
}

// keysRecord is keys and values of rows that are no queries.
type keysRecord struct{ stored }

// keepKeys notes rows for the tape, before their keys are overwritten.
func (t *Tape) keepKeys(a *Attention, layer int, f *Forest, kv Mat) {
	r := &keysRecord{stored{rotated: t.keepRotated(a, f, kv, 0)}}
	t.store(&r.stored, layer)
	t.record(r)
}

func (r *keysRecord) backward(t *Tape) {
	if r.d.Data != nil {
		r.rotated.backward(t, r.d)
	}
}
