package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// sees returns the positions [from, to) of the current range that a row sees. There are none if from ≥ to.
func (t *attendTask) sees(r forestRow) (from, to int) {
	return max(t.at, t.g.firstSeen(r, t.a)), min(t.at+rangeRows(), t.g.end(r))
}

// attendRange attends to the positions of range r.
func (t *attendTask) attendRange(r int) {
	t.at = r * rangeRows()
	t.look()
	t.score()
	t.weigh()
	switch {
	case t.kv == KVQ8:
		t.mixBlocks(false)
		if !simd.Finite(t.res.o) {
			t.mixBlocks(true)
		}
	default:
		t.mix()
		if !simd.Finite(t.res.o) {
			t.mixApart()
		}
	}
}

// look finds the pages that at least one row of the block sees: those of the positions up to its
// prefix, which are also slots, and those of its ancestors in the range, which may be far ahead.
func (t *attendTask) look() {
	base := t.g.Base
	t.last = 0
	first, ended := t.g.Slots(), 0
	for _, r := range t.rows {
		from, to := t.sees(r)
		ordered := base + r.prefix
		if end := min(to, ordered); from < end {
			first, ended = min(first, from), max(ended, end)
		}
		for _, v := range t.f.restWithin(r, from-ordered, to-ordered) {
			slot := base + int(v)
			t.last = max(t.last, slot+1)
			t.s.seen[slot/PageRows] = true
		}
	}
	t.last = max(t.last, ended)
	t.pages = t.s.pages[:0]
	for p := min(t.at, t.last) / PageRows; p < pagesFor(t.last); p++ {
		if p >= first/PageRows && p < pagesFor(ended) || t.s.seen[p] {
			t.s.column[p] = int32(len(t.pages) * PageRows)
			t.pages = append(t.pages, int32(p))
		}
		t.s.seen[p] = false
	}
	t.stride = (len(t.pages) + 2) * PageRows
	t.w = t.s.scores[:t.n*t.stride]
}

// column returns where a row of weights has a slot of one of the pages.
func (t *attendTask) column(slot int) int { return int(t.s.column[slot/PageRows]) + slot%PageRows }

// score computes the scores of all queries for all slots of the pages.
func (t *attendTask) score() {
	c, d := t.g.Cache, t.a.Dim
	if !t.kv.panels() {
		for i, p := range t.pages {
			simd.Scores(t.w[i*PageRows:], t.stride, t.q, d, t.n, d, c.Keys(t.layer, t.head, int(p)))
		}
		return
	}
	var keys, nexts [fewPages][]byte
	for i := 0; i < len(t.pages); i += fewPages {
		k := 0
		for ; k < fewPages && i+k < len(t.pages); k++ {
			keys[k], _ = c.panels(t.layer, t.head, int(t.pages[i+k]))
			switch next := i + k + fewPages; {
			case next < len(t.pages):
				nexts[k], _ = c.panels(t.layer, t.head, int(t.pages[next]))
			case next-len(t.pages) < len(t.pages): // the values follow
				_, nexts[k] = c.panels(t.layer, t.head, int(t.pages[next-len(t.pages)]))
			}
		}
		t.products.MulAll(t.w[i*PageRows:], PageRows, t.stride, 0, keys[:k], nexts[:k], false)
	}
}

// fewPages is how many pages of keys are multiplied at once: with few queries, one page's sums wait for each other.
const fewPages = 4

// weigh turns scores into weights.
func (t *attendTask) weigh() {
	for i, r := range t.rows {
		for h := range t.group {
			k := i*t.group + h
			x, scale := t.w[k*t.stride:][:len(t.pages)*PageRows], t.a.scale()
			if t.a.Cap != 0 {
				softCap(x, scale, t.a.Cap)
				scale = 1
			}
			t.res.tops[k], t.res.sums[k] = t.weighRow(t.w[k*t.stride:][:t.stride], scale, r)
		}
	}
}

// weighRow turns the scores of a row into weights of the positions that it sees in the range; all
// other slots get weight 0. From a page boundary on, the softmax takes positions in order, wherever
// their slots are, so its sum is the same for any tree. It returns the largest scaled score and the
// sum of the exponentials, as simd.Softmax does. Slot s of x is number s^flip.
func (t *attendTask) weighRow(x []float32, scale float32, r forestRow) (top, sum float32) {
	from, to := t.sees(r)
	if from >= to {
		clear(x)
		return 0, 0
	}
	flip := 0
	if t.kv.panels() {
		flip = halfFlip
	}
	base, ordered := t.g.Base, t.g.Base+r.prefix
	rest := t.f.restWithin(r, from-ordered, to-ordered)
	gather := t.s.gather[:len(rest)]
	for i, v := range rest { // bring the scattered ancestors into position order
		gather[i] = x[t.column(base+int(v))^flip]
	}
	first, masked := 0, from%PageRows
	n := masked // positions before the ancestors, including those that are not seen
	if end := min(to, ordered); from < end {
		first, n = t.column(from-masked), end-(from-masked)
	}
	y := x[first:]
	for i := range masked {
		y[i^flip] = float32(math.Inf(-1))
	}
	for i, s := range gather {
		y[(n+i)^flip] = s
	}
	all := n + len(rest)
	if all&flip != 0 {
		y[all^flip] = float32(math.Inf(-1)) // the last has no partner
	}
	top, sum = simd.Softmax(y[:all+all&flip], scale)
	for i := range gather {
		gather[i] = y[(n+i)^flip]
	}
	if n&flip != 0 {
		y[n^flip] = 0
	}
	clear(y[n+n&flip:])
	clear(x[:first])
	for i, v := range rest {
		x[t.column(base+int(v))^flip] = gather[i]
	}
	return top, sum
}

// mix adds up the values by their weights.
func (t *attendTask) mix() {
	d := t.width()
	c := t.g.Cache
	o := t.res.o
	if t.kv != KVBF16 {
		clear(o)
		for i, p := range t.pages {
			simd.Mix(o, d, t.w[i*PageRows:], t.stride, t.n, d, min(PageRows, t.last-int(p)*PageRows), t.values(int(p)))
		}
		return
	}
	x, width := &t.s.rounded[1], len(t.pages)*PageRows
	x.Reset(gemm.BF16, t.n, width)
	for i := range t.n {
		x.SetRow(i, t.w[i*t.stride:][:width])
	}
	products := x.ByPanels(0, t.n)
	for i, p := range t.pages {
		values := t.halfValues(int(p))
		var next []byte
		switch p := t.at/PageRows + rangePages; {
		case t.a.Latent > 0: // pages have no values to fetch
		case i+1 < len(t.pages):
			_, next = c.panels(t.layer, t.head, int(t.pages[i+1]))
		case p < pagesFor(t.g.Slots()): // the keys of the next range follow
			next, _ = c.panels(t.layer, t.head, p)
		}
		t.mixHalf(&products, i, o, values, next, i > 0)
	}
}

// mixHalf adds the i-th page, in bf16, to the outputs, or starts them with it.
func (t *attendTask) mixHalf(products *gemm.PanelProduct, i int, o []float32, values, next []byte, add bool) {
	size := min(PageRows, (t.last-int(t.pages[i])*PageRows+1)&^1) / 2 * halfStep
	var panels, ahead [stackDim / gemm.Panel][]byte
	for at := 0; at < len(values); {
		k := 0
		for ; k < len(panels) && at+k*halfPanel < len(values); k++ {
			from := at + k*halfPanel
			panels[k], ahead[k] = values[from:from+size], nil
			if from+halfPanel <= len(next) {
				ahead[k] = next[from : from+halfPanel]
			}
		}
		products.MulAll(o[at/halfPanel*t.n*gemm.Panel:], t.n*gemm.Panel, gemm.Panel, i*PageRows, panels[:k], ahead[:k], add)
		at += k * halfPanel
	}
}

// mixApart is mix row by row, over pages without the values that the row does not see. These have
// weight 0, but 0 times an infinity or a NaN is not 0: a sibling's values must not affect a row.
func (t *attendTask) mixApart() {
	d, o := t.width(), t.res.o
	for i, r := range t.rows {
		from := i * t.group
		to := (i + 1) * t.group
		add := false
		first, end := t.sees(r)
		for k, p := range t.pages {
			seen := t.g.sees(t.f, r, int(p), first, end)
			switch {
			case seen == 0:
			case t.kv == KVBF16:
				values := t.halfValues(int(p))
				t.s.blind.bytes = grow(t.s.blind.bytes, len(values))
				blindHalf(t.s.blind.bytes, values, seen)
				products := t.s.rounded[1].ByPanels(from, to)
				t.mixHalf(&products, k, o[from*gemm.Panel:], t.s.blind.bytes, nil, add)
			default:
				t.s.blind.data = grow(t.s.blind.data, d*PageRows)
				values := t.values(int(p))
				for s := range PageRows {
					v := t.s.blind.data[s*d : (s+1)*d]
					clear(v)
					if seen>>s&1 != 0 {
						copy(v, values[s*d:])
					}
				}
				if !add {
					clear(o[from*d : to*d])
				}
				simd.Mix(o[from*d:], d, t.w[from*t.stride+k*PageRows:], t.stride, t.group, d, PageRows, t.s.blind.data)
			}
			add = add || seen != 0
		}
	}
}
