package nn

import "github.com/grovellm/grove/internal/simd"

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

// keysRecord is keys and values of rows that are no queries. The attention of later rows adds to their gradient.
type keysRecord struct {
	rotated
	d Mat // the gradient by rotated keys, and by values
}

// keysAt is where keys went.
type keysAt struct {
	cache *Cache
	layer int
}

// keepKeys notes rows for the tape, before their keys are overwritten.
func (t *Tape) keepKeys(a *Attention, layer int, f *Forest, kv Mat) {
	r := &keysRecord{rotated: t.keepRotated(a, f, kv, 0), d: t.plain(kv.Rows, kv.Cols)}
	clear(r.d.Data[:kv.Rows*kv.Cols])
	for i := range f.segs {
		t.keys[keysAt{f.segs[i].cache, layer}] = r
	}
	t.record(r)
}

func (r *keysRecord) backward(t *Tape) { r.rotated.backward(t, r.d) }

// add takes the gradient of one head by the rows of a sequence that s's rows saw before themselves: dk and dv hold Dim numbers
// for each.
func (r *keysRecord) add(s *segment, head int, dk, dv []float32) {
	dim := r.a.Dim
	for i := range r.f.segs {
		own := &r.f.segs[i]
		if own.cache != s.cache {
			continue
		}
		for j := range min(own.rows, s.from-own.from) {
			g, at := r.d.Row(own.row+j), (own.from+j)*dim
			simd.Add(g[head*dim:(head+1)*dim], dk[at:at+dim])
			simd.Add(g[(r.a.KVHeads+head)*dim:][:dim], dv[at:at+dim])
		}
	}
}
