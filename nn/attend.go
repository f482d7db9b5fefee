package nn

import (
	"math"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/simd"
)

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
	j.attend(worker, task/len(j.blocks), j.blocks[task%len(j.blocks)]) // a worker's tasks are of few heads, those whose keys it stored
}

func (j *attendJob) attend(worker, head int, b attendBlock) {
	g := &j.f.segs[b.seg]
	t := attendTask{
		attendJob: j, s: &j.e.scratch[worker], g: g, row: g.row + b.from, rows: j.f.rows[g.row+b.from : g.row+b.to],
		head: head, half: g.cache.mem.KV == KVBF16, group: j.a.Heads / j.a.KVHeads,
	}
	t.n = len(t.rows) * t.group
	t.look()
	t.takeQueries()
	t.score()
	t.weigh()
	t.mix()
	if !simd.Finite(t.o) {
		t.mixApart()
	}
	t.give()
}

// attendTask is the work of one key/value head and one block of rows.
type attendTask struct {
	*attendJob
	s     *workerScratch
	g     *segment
	row   int // the first row
	rows  []forestRow
	head  int
	half  bool // keys and values are bf16
	group int
	n     int // queries: row r's heads are r·group … r·group+group−1

	first        int       // no row sees a slot before it: whole pages that lie before all windows
	last, stride int       // slots that rows see come before last; the width of a row of weights
	pages        []int32   // those that some row sees, ascending
	q, w, o      []float32 // queries n × Dim, weights n × stride, outputs: n × Dim, or of bf16 panel by panel n × 32
}

// look finds the pages that some row of the block sees: all that rows see in position order, and beyond, where a branch may be far behind
// its trunk, those with one of their ancestors.
func (t *attendTask) look() {
	base, near := t.g.base, 0
	t.first = t.g.slots()
	for _, r := range t.rows {
		near = max(near, base+r.prefix)
		t.first = min(t.first, t.g.firstSeen(r, t.a.Window)/PageRows*PageRows)
	}
	t.last = near
	trunk := pagesFor(near)
	for _, r := range t.rows {
		for _, v := range t.f.rest[r.from:r.to] {
			slot := base + int(v)
			t.last = max(t.last, slot+1)
			t.s.seen[slot/PageRows] = true
		}
	}
	t.pages = t.s.pages[:0]
	for p := range pagesFor(t.last) {
		if p >= t.first/PageRows && p < trunk || t.s.seen[p] {
			t.pages = append(t.pages, int32(p))
		}
		t.s.seen[p] = false
	}
	if len(t.pages) > 0 { // with ancestors that lie before the windows: their scores are to be cleared
		t.first = min(t.first, int(t.pages[0])*PageRows)
	}
	t.stride = pagesFor(t.last) * PageRows
	if t.a.Sinks != nil {
		t.stride = pagesFor(t.last+1) * PageRows
	}
}

func (t *attendTask) takeQueries() {
	d := t.a.Dim
	t.q = t.s.queries[:t.n*d]
	for i := range t.rows {
		copy(t.q[i*t.group*d:(i+1)*t.group*d], t.qkv.Row(t.row + i)[t.head*t.group*d:])
	}
}

// score computes the scores of all queries by all slots of the pages.
func (t *attendTask) score() {
	d := t.a.Dim
	t.w = t.s.scores[:t.n*t.stride]
	if !t.half {
		for _, p := range t.pages {
			simd.Scores(t.w[p*PageRows:], t.stride, t.q, d, t.n, d, t.g.cache.keys(t.layer, t.head, int(p)))
		}
		return
	}
	x := &t.s.halves[0]
	x.Reset(gemm.BF16, t.n, d)
	for i := range t.n {
		x.SetRow(i, t.q[i*d:(i+1)*d])
	}
	lent := x.Lend(0, t.n)
	var keys, nexts [fewPages][]byte
	for i := 0; i < len(t.pages); {
		k, first := 0, t.pages[i]
		for ; k < fewPages && i+k < len(t.pages) && t.pages[i+k] == first+int32(k); k++ {
			keys[k], nexts[k] = t.g.cache.halves(t.layer, t.head, int(first)+k) // then come the values, unless there are other pages
			if next := i + k + fewPages; next < len(t.pages) {
				nexts[k], _ = t.g.cache.halves(t.layer, t.head, int(t.pages[next]))
			}
		}
		lent.MulAll(t.w[first*PageRows:], PageRows, t.stride, 0, keys[:k], nexts[:k], false)
		i += k
	}
}

// fewPages is how many pages of keys are multiplied at once: of few queries one page's sums would wait for each other.
const fewPages = 4

// weigh turns scores into weights.
func (t *attendTask) weigh() {
	flip := 0
	if t.half {
		flip = halfFlip
	}
	for i, r := range t.rows {
		first := t.g.firstSeen(r, t.a.Window)
		for h := range t.group {
			x, scale := t.w[(i*t.group+h)*t.stride:][:t.stride], t.a.scale()
			if t.a.Cap != 0 {
				softCap(x[t.first:], scale, t.a.Cap)
				scale = 1
			}
			weighRow(x, scale, t.sink(h), t.g.base, t.g.base+r.prefix, t.f.rest[r.from:r.to], flip, t.s.gather, first)
			clear(x[t.first:max(t.first, first/PageRows*PageRows)])
		}
	}
}

// sink is what the weights of a head are shared with; nil: nothing.
func (t *attendTask) sink(head int) []float32 {
	if t.a.Sinks == nil {
		return nil
	}
	at := t.head*t.group + head
	return t.a.Sinks[at : at+1]
}

// weighRow turns the scores of a row into weights, in the order of slots, where slot s is number s^flip: [0, ordered) and base + each of rest.
// The others weigh 0, and so do the first of those; what lies in whole pages before them is not touched.
// A sink is one more score, already scaled, whose weight nobody gets.
func weighRow(x []float32, scale float32, sink []float32, base, ordered int, rest []int32, flip int, gather []float32, first int) {
	gather = gather[:len(rest)]
	for t, v := range rest { // bring the scattered ancestors into position order
		gather[t] = x[(base+int(v))^flip]
	}
	for t, s := range gather {
		x[(ordered+t)^flip] = s
	}
	from := first / PageRows * PageRows
	for i := from; i < first; i++ {
		x[i^flip] = float32(math.Inf(-1))
	}
	n := ordered + len(rest)
	for _, s := range sink {
		x[n^flip] = s / scale
		n++
	}
	if n&flip != 0 {
		x[n^flip] = float32(math.Inf(-1)) // the last of a pair is alone
	}
	simd.Softmax(x[from:n+n&flip], scale)
	for t := range gather {
		if gather[t] = 0; ordered+t >= from {
			gather[t] = x[(ordered+t)^flip]
		}
	}
	if ordered&flip != 0 {
		x[ordered^flip] = 0
	}
	clear(x[ordered+ordered&flip:])
	for t, v := range rest {
		x[(base+int(v))^flip] = gather[t]
	}
}

// mix adds the values by their weights.
func (t *attendTask) mix() {
	d, c := t.a.Dim, t.g.cache
	if !t.half {
		t.o = t.s.out[:t.n*d]
		clear(t.o)
		for _, p := range t.pages {
			simd.Mix(t.o, d, t.w[p*PageRows:], t.stride, t.n, d, min(PageRows, t.last-int(p)*PageRows), c.values(t.layer, t.head, int(p)))
		}
		return
	}
	x, end := &t.s.halves[1], (t.last+1)&^1
	x.Reset(gemm.BF16, t.n, end)
	for i := range t.n {
		x.SetRow(i, t.w[i*t.stride:][:end])
	}
	t.o = t.s.out[:t.n*c.mem.valuePanels()*gemm.Panel]
	lent := x.Lend(0, t.n)
	for i, p := range t.pages {
		_, values := c.halves(t.layer, t.head, int(p))
		var next []byte
		if i+1 < len(t.pages) {
			_, next = c.halves(t.layer, t.head, int(t.pages[i+1]))
		}
		t.mixHalf(&lent, int(p), t.o, values, next, i > 0)
	}
}

// mixHalf adds a page of bf16 to outputs, or begins with it.
func (t *attendTask) mixHalf(lent *gemm.Lent, p int, o []float32, values, next []byte, add bool) {
	size := min(PageRows, (t.last-p*PageRows+1)&^1) / 2 * halfStep
	var panels, ahead [stackDim / gemm.Panel][]byte
	for at := 0; at < len(values); {
		k := 0
		for ; k < len(panels) && at+k*halfPanel < len(values); k++ {
			from := at + k*halfPanel
			if panels[k], ahead[k] = values[from:from+size], nil; next != nil {
				ahead[k] = next[from : from+halfPanel]
			}
		}
		lent.MulAll(o[at/halfPanel*t.n*gemm.Panel:], t.n*gemm.Panel, gemm.Panel, p*PageRows, panels[:k], ahead[:k], add)
		at += k * halfPanel
	}
}

// mixApart is mix row by row, of pages without the values that the row does not see. Those weigh 0, but 0 times an infinity or a NaN
// is not 0: a row must not suffer from what a sibling came to.
func (t *attendTask) mixApart() {
	d := t.a.Dim
	for i, r := range t.rows {
		from, to, add := i*t.group, (i+1)*t.group, false
		for _, p := range t.pages {
			seen := t.g.sees(t.f, r, int(p), t.a.Window)
			switch {
			case seen == 0:
			case t.half:
				_, values := t.g.cache.halves(t.layer, t.head, int(p))
				t.s.blind.half = grow(t.s.blind.half, len(values))
				blindHalf(t.s.blind.half, values, seen)
				lent := t.s.halves[1].Lend(from, to)
				t.mixHalf(&lent, int(p), t.o[from*gemm.Panel:], t.s.blind.half, nil, add)
			default:
				t.s.blind.data = grow(t.s.blind.data, d*PageRows)
				values := t.g.cache.values(t.layer, t.head, int(p))
				for s := range PageRows {
					v := t.s.blind.data[s*d : (s+1)*d]
					if clear(v); seen>>s&1 != 0 {
						copy(v, values[s*d:])
					}
				}
				if !add {
					clear(t.o[from*d : to*d])
				}
				simd.Mix(t.o[from*d:], d, t.w[from*t.stride+int(p)*PageRows:], t.stride, t.group, d, PageRows, t.s.blind.data)
			}
			add = add || seen != 0
		}
	}
}

// give hands the outputs on.
func (t *attendTask) give() {
	d := t.a.Dim
	size := t.group * d
	for i := range t.rows {
		var y []float32
		if !t.half {
			y = t.o[i*size : (i+1)*size]
		} else {
			y = t.s.queries[:size]
			for h := range t.group {
				for at := 0; at < d; at += gemm.Panel {
					copy(y[h*d+at:(h+1)*d], t.o[(at/gemm.Panel*t.n+i*t.group+h)*gemm.Panel:][:gemm.Panel])
				}
			}
		}
		if t.in != nil {
			t.in.part(t.row+i, t.head*size, y)
		} else {
			copy(t.out.Row(t.row + i)[t.head*size:], y)
		}
	}
}
