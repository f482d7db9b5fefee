package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/gemm"
)

// Attention processes a text in ranges of positions: [0, rangeRows), [rangeRows, 2·rangeRows) and
// so on. Each range has its own softmax, so a block of queries needs the scores of only one range
// at a time, and these stay in a core's cache. The results of a row's ranges are then folded in the
// order of positions (attendfold.go). Ranges are cut by position, never by rows or workers, so a
// row's bits do not depend on either, and several workers can share the ranges of one row.

// rangePages is the length of a range in pages of the cache. It is part of the definition: changing it
// changes the bits of texts longer than a range. Tests shorten it. Compared with 32, 16 made 16 rows
// over 8,192 and 32,768 tokens 6 % slower (Zen 4); above 32, workers have fewer ranges to share.
var rangePages = 32

// UseRanges sets the length of ranges, in pages, until restore is called, so that tests get many
// ranges from short texts. No pass may be running; caches hold nothing that depends on ranges.
func UseRanges(pages int) (restore func()) {
	old := rangePages
	rangePages = pages
	return func() { rangePages = old }
}

// queryBlock is the number of queries (rows × heads of a group) that share one walk over the keys and
// values of a head.
const queryBlock = 64

// partsPerWorker is the least number of parts for each worker where blocks are cut into parts.
const partsPerWorker = 4

// attendBlock is rows that attend together, counted from the first row of sequence seg. [from, to) are rows of that
// sequence, or extend into those after it. Their attention is pieces [lo, hi), the first of which covers all rows.
type attendBlock struct {
	seg, from, to int
	lo, hi        int
	keptAt        int // where the results of its pieces are kept for folding, head by head; −1: they are not kept
	kept          int // the size of one head's results
}

// attendPiece is the attention of some rows to one range. The rows are counted from the block's first
// and belong to sequence seg or, in a range that several sequences share, to the others as well.
type attendPiece struct {
	seg, from, to int
	number        int // of the range
	keptAt        int // where its result is among those of its block and head
}

// attendPart is pieces [lo, hi) of a block.
type attendPart struct{ block, lo, hi int }

type attendJob struct {
	e        *Exec
	a        *Attention
	layer    int
	f        *Forest
	qkv, out Mat
	in       *Intake
	block    int // the most rows in a block
	blocks   []attendBlock
	pieces   []attendPiece
	parts    []attendPart
	split    []int // the blocks that have several parts
}

// plan makes the blocks and parts, shares them among the workers, and plans their phases.
func (j *attendJob) plan() {
	threads, heads := j.e.Threads(), j.a.KVHeads
	rows := j.block
	j.block = blockRows(len(j.f.rows), heads, threads, j.block)
	j.parts = j.parts[:0]
	j.split = j.split[:0]
	j.pieces = j.pieces[:0]
	j.blocks = j.cut(j.blocks[:0], &j.pieces, 0, len(j.f.rows), rows)
	total := len(j.pieces)
	most := max(1, total*heads/(threads*partsPerWorker))          // pieces in a part
	if threads == 1 || len(j.blocks) == 1 && heads%threads == 0 { // whole heads divide evenly
		most = total
	}
	size := 0
	for i := range j.blocks {
		b := &j.blocks[i]
		pieces := b.hi - b.lo
		parts := (pieces + most - 1) / most
		if parts > 1 {
			j.split = append(j.split, i)
			b.keptAt = size
			b.kept = 0
			for p := b.lo; p < b.hi; p++ {
				j.pieces[p].keptAt = b.kept
				b.kept += j.keptSize(&j.pieces[p])
			}
			size += heads * b.kept
		}
		for p := range parts {
			j.parts = append(j.parts, attendPart{i, b.lo + pieces*p/parts, b.lo + pieces*(p+1)/parts})
		}
	}
	j.e.plan.phase(len(j.parts)*heads, j)
	if len(j.split) > 0 {
		j.e.grow(scratchSizes{kept: size})
		j.e.plan.phase(len(j.split)*heads, (*foldJob)(j))
	}
}

// blockRows returns the number of rows in a block, at most most, with which the busiest worker finishes soonest.
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

// rowsToRead is the number of rows that take as long as a task's reading of keys and values (SmolLM2 over
// 128 tokens, two cores of a Zen 5: with fewer blocks, passes of 8 to 16 rows take 2 to 3 % longer).
const rowsToRead = 3

// cut appends the blocks of rows [from, to) of the forest, and their pieces. A block has at most
// j.block rows of one sequence, or at most most rows of sequences that begin alike.
func (j *attendJob) cut(blocks []attendBlock, pieces *[]attendPiece, from, to, most int) []attendBlock {
	for s := 0; s < len(j.f.segs); s++ {
		g := &j.f.segs[s]
		first, end := max(from-g.Row, 0), min(to-g.Row, g.Rows)
		if first >= end {
			continue
		}
		if run, ranges := j.common(s, min(g.Row+first+most, to)); run > 1 {
			blocks = append(blocks, j.join(pieces, s, run, ranges, first))
			s += run - 1
			continue
		}
		for r := first; r < end; r += j.block {
			b := attendBlock{seg: s, from: r, to: min(r+j.block, end), lo: len(*pieces), keptAt: -1}
			j.appendPieces(pieces, attendPiece{seg: s, to: b.to - r}, 0, g.Row+r)
			b.hi = len(*pieces)
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// join makes one block of run sequences from s on, without their first rows. The ranges that the sequences
// have in common, which all the rows see in full, are read once; each sequence's own ranges follow.
func (j *attendJob) join(pieces *[]attendPiece, s, run, ranges, first int) attendBlock {
	last := &j.f.segs[s+run-1]
	at := j.f.segs[s].Row + first
	b := attendBlock{seg: s, from: first, to: first + last.Row + last.Rows - at, lo: len(*pieces), keptAt: -1}
	for r := range ranges {
		*pieces = append(*pieces, attendPiece{seg: s, to: b.to - b.from, number: r})
	}
	for i := s; i < s+run; i++ {
		g := &j.f.segs[i]
		j.appendPieces(pieces, attendPiece{seg: i, from: max(g.Row-at, 0), to: g.Row + g.Rows - at}, ranges, at)
	}
	b.hi = len(*pieces)
	return b
}

// appendPieces appends the pieces of some rows of one sequence, starting at range least. The
// block's first row is row at of the forest.
func (j *attendJob) appendPieces(pieces *[]attendPiece, p attendPiece, least, at int) {
	g := &j.f.segs[p.seg]
	lo, hi := g.Slots(), 0
	for _, r := range j.f.rows[at+p.from : at+p.to] {
		lo = min(lo, g.firstSeen(r, j.a)/rangeRows())
		hi = max(hi, (g.end(r)+rangeRows()-1)/rangeRows())
	}
	hi = max(hi, lo+1) // even for a row that sees nothing
	for p.number = max(lo, least); p.number < hi; p.number++ {
		*pieces = append(*pieces, p)
	}
}

// common returns how many sequences from s on make up a block of rows before row to of the forest,
// and how many leading ranges have the same pages in all of them.
func (j *attendJob) common(s, to int) (run, ranges int) {
	run = 1
	if j.a.Window != 0 {
		return run, 0
	}
	for i := s + 1; i < len(j.f.segs) && j.f.segs[i].Row+j.f.segs[i].Rows <= to; i++ {
		a, b := &j.f.segs[i-1], &j.f.segs[i]
		n := min(b.samePages/rangePages, a.Base/rangeRows(), b.Base/rangeRows())
		if n == 0 || run > 1 && n < ranges {
			break
		}
		if run == 1 {
			ranges = n
		}
		run++
	}
	return run, ranges
}

func rangeRows() int { return rangePages * PageRows }

// Do attends for one key/value head and one part.
func (j *attendJob) Do(worker, task int) {
	p := j.parts[task%len(j.parts)] // a worker's tasks belong to few heads, those whose keys it stored
	head, b := task/len(j.parts), j.blocks[p.block]
	t := j.task(worker, head, b)
	if b.keptAt < 0 {
		t.attend(j.pieces[b.lo:b.hi])
		return
	}
	t.takeQueries()
	for i := p.lo; i < p.hi; i++ {
		of := t.piece(&j.pieces[i])
		of.res = j.keptPiece(&of, &j.pieces[i])
		of.attendPiece(&j.pieces[i])
	}
}

// attendTask is the work of one key/value head and one block of rows.
type attendTask struct {
	*attendJob
	attendBlock
	s      *workerScratch
	g      *Segment
	row    int // the first row
	rows   []forestRow
	head   int
	kv     KVType
	group  int
	n      int // queries: row r's heads are r·group … r·group+group−1
	before int // queries of the block that precede these

	q        []float32         // queries, n × Dim
	products gemm.PanelProduct // of panels
	res      rangeResult       // of the current range

	// the range's first position; one past the last slot that rows see; the width of a row of weights
	at, last, stride int
	pages            []int32   // those that at least one row sees, ascending
	w                []float32 // weights, n × stride: the slots of pages side by side
}

// task prepares the work of a head and a block.
func (j *attendJob) task(worker, head int, b attendBlock) attendTask {
	g := &j.f.segs[b.seg]
	t := attendTask{
		attendJob: j, attendBlock: b, s: &j.e.scratch[worker], g: g, row: g.Row + b.from,
		rows: j.f.rows[g.Row+b.from : g.Row+b.to], head: head, kv: g.Cache.mem.KV, group: j.a.Heads / j.a.KVHeads,
	}
	t.n = len(t.rows) * t.group
	return t
}

// piece returns the task of a piece, without its queries.
func (t *attendTask) piece(p *attendPiece) attendTask {
	of := *t
	of.g = &t.f.segs[p.seg]
	of.row += p.from
	of.rows = t.rows[p.from:p.to]
	of.before = p.from * t.group
	of.n = len(of.rows) * t.group
	return of
}

// attendPiece attends to a piece, with queries that the block has already taken.
func (t *attendTask) attendPiece(p *attendPiece) {
	t.q = t.q[t.before*t.a.Dim:][:t.n*t.a.Dim]
	if t.kv.panels() {
		t.products = t.s.rounded[0].ByPanels(t.before, t.before+t.n)
	}
	t.attendRange(p.number)
}

// attend attends to all pieces.
func (t *attendTask) attend(pieces []attendPiece) {
	t.takeQueries()
	all := t.folded()
	t.res = all
	t.attendRange(pieces[0].number)
	for i := range pieces[1:] {
		p := &pieces[1+i]
		of := t.piece(p)
		of.res = rangeResult{t.s.out[:of.n*t.width()], t.s.tops[:of.n], t.s.totals[:of.n]}
		of.attendPiece(p)
		of.fold(all, t.n)
	}
	t.give(all)
}

// width is the length of a query's results: a head's dimensions, padded to whole panels where pages hold panels.
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

// give passes the outputs on.
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
