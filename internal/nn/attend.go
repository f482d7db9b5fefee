package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/gemm"
)

// Attention goes over a text in ranges of positions: [0, rangeRows), [rangeRows, 2·rangeRows) and so
// on. A range has a softmax of its own, so a block of queries needs scores for one range only, which
// stay in a core's cache. The results of a row's ranges are then folded in the order of positions
// (attendfold.go). Ranges are cut by position alone, never by rows or workers, so a row's bits do not
// depend on them; and several workers can share the ranges of one row.

// rangePages is the length of a range in pages of the cache. It is a constant of the definition: with
// another one texts longer than a range have other bits. Tests make it shorter. Beside 32, 16 cost 16 rows
// over 8,192 and 32,768 tokens 6 % more time (Zen 4); with more, workers have fewer ranges to share.
var rangePages = 32

// UseRanges makes ranges so many pages long, until restore is called: so that tests see many ranges
// in short texts. No pass may be under way, and caches keep nothing of ranges.
func UseRanges(pages int) (restore func()) {
	old := rangePages
	rangePages = pages
	return func() { rangePages = old }
}

// queryBlock is the number of queries (rows × heads of a group) that share one walk over the keys and
// values of a head.
const queryBlock = 64

// partsPerWorker is how many parts a worker gets, at least, where blocks are cut into parts.
const partsPerWorker = 4

// attendBlock is rows [from, to) of a sequence, which see positions of ranges [lo, hi).
type attendBlock struct {
	seg, from, to int
	lo, hi        int
	keptAt        int // where the results of its ranges are kept for folding; −1: they are not
}

// attendPart is ranges [lo, hi) of a block.
type attendPart struct{ block, lo, hi int }

type attendJob struct {
	e        *Exec
	a        *Attention
	layer    int
	f        *Forest
	qkv, out Mat
	in       *Intake
	block    int // rows of a block, at most
	blocks   []attendBlock
	parts    []attendPart
	split    []int // the blocks of several parts
}

// plan makes the blocks and parts, of which each worker gets some, and plans their phases.
func (j *attendJob) plan() {
	threads, heads := j.e.Threads(), j.a.KVHeads
	j.block = blockRows(len(j.f.rows), heads, threads, j.block)
	j.blocks = j.blocks[:0]
	j.parts = j.parts[:0]
	j.split = j.split[:0]
	total := 0
	for s, g := range j.f.segs {
		for r := 0; r < g.Rows; r += j.block {
			b := j.blockOf(s, r, min(r+j.block, g.Rows))
			j.blocks, total = append(j.blocks, b), total+b.hi-b.lo
		}
	}
	most := max(1, total*heads/(threads*partsPerWorker))          // ranges of a part
	if threads == 1 || len(j.blocks) == 1 && heads%threads == 0 { // whole heads are shared out evenly
		most = total
	}
	size := 0
	for i := range j.blocks {
		b := &j.blocks[i]
		ranges := b.hi - b.lo
		parts := (ranges + most - 1) / most
		if parts > 1 {
			j.split = append(j.split, i)
			b.keptAt = size
			size += heads * ranges * j.keptSize(b)
		}
		for p := range parts {
			j.parts = append(j.parts, attendPart{i, b.lo + ranges*p/parts, b.lo + ranges*(p+1)/parts})
		}
	}
	j.e.plan.phase(len(j.parts)*heads, j)
	if len(j.split) > 0 {
		j.e.grow(scratchSizes{kept: size})
		j.e.plan.phase(len(j.split)*heads, (*foldJob)(j))
	}
}

// blockRows is how many rows make a block, at most so many, that the busiest worker is done soonest.
func blockRows(rows, heads, threads, most int) int {
	best, least := most, math.MaxInt
	for size := min(rows, most); size > 0; size-- {
		tasks := (rows + size - 1) / size * heads
		if time := (tasks + threads - 1) / threads * (size + rowsToRead); time < least {
			best, least = size, time
		}
	}
	return best
}

// rowsToRead is how many rows take as long as a task's reading of keys and values (SmolLM2 over 128 tokens, two cores
// of a Zen 5: with fewer blocks, passes of 8 to 16 rows take 2 to 3 % longer).
const rowsToRead = 3

// blockOf is rows [from, to) of a sequence.
func (j *attendJob) blockOf(seg, from, to int) attendBlock {
	g := &j.f.segs[seg]
	b := attendBlock{seg: seg, from: from, to: to, lo: g.Slots(), keptAt: -1}
	for _, r := range j.f.rows[g.Row+from : g.Row+to] {
		b.lo = min(b.lo, g.firstSeen(r, j.a.Window)/rangeRows())
		b.hi = max(b.hi, (g.end(r)+rangeRows()-1)/rangeRows())
	}
	return b
}

func rangeRows() int { return rangePages * PageRows }

// Do attends for one key/value head and one part.
func (j *attendJob) Do(worker, task int) {
	p := j.parts[task%len(j.parts)] // a worker's tasks are of few heads, those whose keys it stored
	head, b := task/len(j.parts), j.blocks[p.block]
	t := j.task(worker, head, b)
	if b.keptAt < 0 {
		t.attend()
		return
	}
	t.takeQueries()
	for r := p.lo; r < p.hi; r++ {
		t.res = j.keptRange(&t, r)
		t.attendRange(r)
	}
}

// attendTask is the work of one key/value head and one block of rows.
type attendTask struct {
	*attendJob
	attendBlock
	s     *workerScratch
	g     *Segment
	row   int // the first row
	rows  []forestRow
	head  int
	kv    KVType
	group int
	n     int // queries: row r's heads are r·group … r·group+group−1

	q        []float32         // queries, n × Dim
	products gemm.PanelProduct // of panels
	res      rangeResult       // of the range at hand

	// the range's first position; slots that rows see come before last; the width of a row of weights
	at, last, stride int
	pages            []int32   // those that some row sees, ascending
	w                []float32 // weights, n × stride: the slots of pages side by side
}

// task readies the work of a head and a block.
func (j *attendJob) task(worker, head int, b attendBlock) attendTask {
	g := &j.f.segs[b.seg]
	t := attendTask{
		attendJob: j, attendBlock: b, s: &j.e.scratch[worker], g: g, row: g.Row +
			b.from, rows: j.f.rows[g.Row+b.from : g.Row+b.to],
		head: head, kv: g.Cache.mem.KV, group: j.a.Heads / j.a.KVHeads,
	}
	t.n = len(t.rows) * t.group
	return t
}

// attend attends to all ranges.
func (t *attendTask) attend() {
	t.takeQueries()
	all := t.folded()
	t.res = all
	t.attendRange(t.lo)
	t.res = rangeResult{t.s.out[:t.n*t.width()], t.s.tops[:t.n], t.s.totals[:t.n]}
	for r := t.lo + 1; r < t.hi; r++ {
		t.attendRange(r)
		t.fold(all)
	}
	t.give(all)
}

// width is the results of a query: a head's dimensions, filled up to whole panels where pages hold those.
func (t *attendTask) width() int { return t.g.Cache.mem.shapeOf(t.layer).resultWidth() }

func (t *attendTask) takeQueries() {
	d := t.a.Dim
	t.q = t.s.queries[:t.n*d]
	for i := range t.rows {
		copy(t.q[i*t.group*d:(i+1)*t.group*d], t.qkv.Row(t.row + i)[t.head*t.group*d:])
	}
	x := &t.s.rounded[0]
	switch t.kv {
	case KVBF16:
		x.Reset(gemm.BF16, t.n, d)
		for i := range t.n {
			x.SetRow(i, t.q[i*d:(i+1)*d])
		}
	case KVQ8:
		t.quantizeQueries(x)
	default:
		return
	}
	t.products = x.ByPanels(0, t.n)
}

// give hands the outputs on.
func (t *attendTask) give(all rangeResult) {
	t.addSinks(all)
	d := t.g.Cache.mem.shapeOf(t.layer).values()
	size := t.group * d
	for i := range t.rows {
		var y []float32
		if !t.kv.panels() {
			y = all.o[i*size : (i+1)*size]
		} else {
			y = t.s.queries[:size]
			for h := range t.group {
				for at := 0; at < d; at += gemm.Panel {
					copy(y[h*d+at:(h+1)*d], all.o[(at/gemm.Panel*t.n+i*t.group+h)*gemm.Panel:][:gemm.Panel])
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
