// The tiling of a product: slices of panels by blocks of rows, and what each call of a kernel prefetches.

package gemm

import (
	"sync"
	"unsafe"
)

// engine is an assembly kernel and its properties that matter for the tiling.
type engine struct {
	id    int
	lanes int // outputs in a call: a panel or part of one
	rows  int // the most rows in a call
	kept  int // with more rows, a call keeps some sums in memory; 0: never
	// An odd number of rows costs as much as one more: all calls except the last take an even number.
	even bool
	// A single call may have this many rows: it keeps some sums in memory, but the panel is read only once.
	tall     int
	inMemory bool // whether it does
	// An iteration of the main loop does this many steps, and issues this many prefetches: as many
	// as it can, or a sparse few if many calls share the work.
	turn, dense, sparse int
	// Cycles of the multiply unit per step, for one row and a whole panel.
	cost int
	// From many rows on, elements are unpacked to bytes once, and the kernel wide multiplies these. 0: never.
	wide, many int
	// For up to few rows, the kernel fewer takes a larger part of a panel. 0: there is none.
	few, fewer int
}

// engineOf returns the engine with a number.
func engineOf(id int) engine {
	e := engines[id]
	e.id = id
	return e
}

// forRows makes e the engine for the given number of rows.
func (e *engine) forRows(n int) {
	for n > 0 && n <= e.few {
		*e = engineOf(e.fewer)
	}
	if n > e.rows && n <= e.tall {
		e.rows, e.inMemory = e.tall, true
	}
	if e.kept > 0 && n > e.kept {
		e.inMemory = true
	}
}

// tile is the work of one kernel call: some steps of k, some rows, some outputs.
type tile struct {
	w     unsafe.Pointer // the weights of the first step
	x     unsafe.Pointer // the first row's activations there
	xs    uintptr        // bytes from one row to the next
	n     uintptr        // steps
	acc   unsafe.Pointer // [rows][Panel]f32 to resume from
	first uintptr        // 1: start from zero instead
	out   unsafe.Pointer // where to write the results; may be acc
	outs  uintptr        // bytes from one row of results to the next
	pf    uintptr        // what to prefetch meanwhile: possibly beyond valid memory, so it is not a pointer
	pfs   uintptr        // bytes from one prefetch to the next
	dense uintptr        // 0: the sparse prefetches, 1: all, 2: all, of data that is read only once
	rows  uintptr
	scale unsafe.Pointer // integer products in parts of a panel: the scales of the first step
	// The number of blocks of rows, one after another: x, acc and out advance after each.
	blocks uintptr
	share  uintptr // bytes that each block prefetches
}

const (
	// A slice is at most sliceBytes of a panel. Two of them, the one being multiplied and the one
	// on its way, must stay in the second-level cache along with everything else.
	sliceBytes = 64 << 10
	// At most chunkRows rows visit a slice; their accumulators take 8 KiB.
	chunkRows = 64
	sumsSize  = chunkRows * Panel * 4
	cacheLine = 64
)

// pass is one Mul by an assembly kernel. It is passed down by value: whatever it points to must not
// escape, since that would be allocated.
//
// It walks the weights in memory order, slice by slice, and applies each slice to all rows (of a
// chunk) before the next. The sums keep one order because the accumulators of a row are saved and
// resumed, which does not change a bit of them.
//
// Meanwhile the calls prefetch the next slice, each its share of the lines, so that memory streams
// while rows are multiplied: many rows then take less than the sum of the two times. If no earlier
// call could prefetch for it, a call prefetches its own weights slightly ahead of itself. This is
// the case with few rows, which need no slices: one call takes the whole panel.
type pass struct {
	e      engine
	m      *Matrix
	dst    []float32
	stride int
	shift  int // panel p's results are stored this many panels after the p-th
	x      *Input
	r0, r1 int            // the rows of x to multiply
	base   int            // the row whose results come first
	warm   bool           // the first slice has already been prefetched
	then   ahead          // what to prefetch at the end
	work   unsafe.Pointer // [chunkRows][Panel]f32, the accumulators between slices
	bytes  unsafe.Pointer // a slice of elements unpacked to bytes; nil: packed elements are multiplied directly

	scratch *Scratch
}

// at returns where the results of row r and panel p go.
func (s *pass) at(r, p int) int { return (r-s.base)*s.stride + (p+s.shift)*Panel }

// calls returns how many kernel calls the given number of rows of a panel takes.
func (s *pass) calls(rows int) int { return (rows + s.e.rows - 1) / s.e.rows * (Panel / s.e.lanes) }

// run multiplies panels [p0, p1), with room for accumulators if needed: not where one call does a panel.
func (s pass) run(p0, p1 int) {
	n := s.r1 - s.r0
	s.e.forRows(n)
	wide := s.e.wide != 0 && n >= s.e.many
	whole := !wide && s.calls(n) == 1 && p1*Panel <= s.m.out
	if s.scratch == nil && (s.e.inMemory || !whole) {
		s.scratch = scratches.Get().(*Scratch)
		defer scratches.Put(s.scratch)
	}
	if whole {
		s.walkWhole(p0, p1)
	} else {
		s.workingIn(s.scratch, wide).walk(p0, p1)
	}
}

// walkWhole is walk where one call does a panel: calls of a small matrix are so short that the time between counts.
func (s pass) walkWhole(p0, p1 int) {
	m := s.m
	e := &s.e
	n := s.r1 - s.r0
	t := tile{
		n: uintptr(steps(m.t, m.in)), x: unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.x.buf)),
			s.r0*s.x.stride), xs: uintptr(s.x.stride),
		rows: uintptr(n), first: 1, outs: uintptr(s.stride * 4),
	}
	if e.inMemory {
		t.acc = line(unsafe.Pointer(&s.scratch.memory))
	}
	t.prefetch(e, 0, m.panel, 1)
	t.once()
	ahead := streamAhead(m.t, e.cost*n)
	for p := p0; p < p1; p++ {
		t.w = unsafe.Pointer(&m.data[p*m.panel])
		t.scale = t.w
		t.pf = uintptr(t.w) + ahead
		t.out = unsafe.Pointer(&s.dst[s.at(s.r0, p)])
		e.runBlocks(&t, 1)
	}
}

// Scratch is memory for the products of one worker. The zero value is ready to use.
type Scratch struct {
	memory [cacheLine + sumsSize + wideSteps*wideStep]byte
}

// scratches are for products whose caller has no Scratch.
var scratches = sync.Pool{New: func() any { return new(Scratch) }}

// line returns the first cache line that begins in memory.
func line(memory unsafe.Pointer) unsafe.Pointer {
	return unsafe.Add(memory, -uintptr(memory)&(cacheLine-1))
}

// workingIn returns the pass with memory of the caller's.
func (s pass) workingIn(m *Scratch, wide bool) pass {
	s.work = line(unsafe.Pointer(&m.memory))
	if wide {
		s.bytes, s.e = unsafe.Add(s.work, sumsSize), engineOf(s.e.wide)
	}
	return s
}

func (s pass) walk(p0, p1 int) {
	n := s.r1 - s.r0
	chunks := (n + chunkRows - 1) / chunkRows
	for p := p0; p < p1; p++ {
		for c := range chunks {
			cold := p == p0 && c == 0 && !s.warm
			next := s.after(p)
			if c < chunks-1 { // the same panel follows
				next = ahead{}
			} else if p == p1-1 {
				next = s.then
			}
			s.panel(p, s.r0+n*c/chunks, s.r0+n*(c+1)/chunks, cold, next)
		}
	}
}

// ahead is weights to prefetch.
type ahead struct {
	from  unsafe.Pointer
	bytes int
}

// after returns the first slice of the panel after p.
func (s *pass) after(p int) ahead {
	if p+1 >= s.m.Panels() {
		return ahead{}
	}
	return ahead{unsafe.Pointer(&s.m.data[(p+1)*s.m.panel]), min(sliceBytes, s.m.panel)}
}

// panel multiplies panel p by rows [r0, r1), and prefetches next at its end.
func (s pass) panel(p, r0, r1 int, cold bool, next ahead) {
	s.e.forRows(r1 - r0)
	m := s.m
	var (
		bytes = stepBytes[m.t]
		full  = (p+1)*Panel <= m.out
		total = steps(m.t, m.in)
		calls = s.calls(r1 - r0)
		slice = total
	)
	switch {
	case s.bytes != nil:
		slice = wideSteps * super / stepK[m.t]
	case calls > 1:
		slices := (total*bytes + sliceBytes - 1) / sliceBytes
		slice = ((total+slices-1)/slices + s.e.turn - 1) / s.e.turn * s.e.turn // equal, in whole iterations of loops
	}
	for k := 0; k < total; k += slice {
		n := min(slice, total-k)
		a := next
		if k+n < total {
			a = ahead{unsafe.Pointer(&m.data[p*m.panel+(k+n)*bytes]), min(slice, total-k-n) * bytes}
		}
		s.slice(p, k, n, r0, r1, calls, a, cold && k == 0, full && k+n == total)
	}
	if !full {
		for r := r0; r < r1; r++ {
			row := unsafe.Slice((*float32)(unsafe.Add(s.work, (r-r0)*Panel*4)), Panel)
			copy(s.dst[s.at(r, p):][:m.out-p*Panel], row)
		}
	}
}

// slice multiplies steps [k, k+n) of panel p by rows [r0, r1), and prefetches what follows. The
// results go to dst if toDst is set, else to the accumulators.
func (s pass) slice(p, k, n, r0, r1, calls int, next ahead, cold, toDst bool) {
	t, e := s.m.t, &s.e
	var (
		bytes  = stepBytes[t]
		w      = unsafe.Pointer(&s.m.data[p*s.m.panel+k*bytes])
		x      = unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.x.buf)), xOffset(t, k, s.x.pairs))
		parts  = Panel / e.lanes
		blocks = calls / parts
		own    = cold || calls == 1 // the calls prefetch the slice itself
		tile   = tile{xs: uintptr(s.x.stride), n: uintptr(n), outs: Panel * 4}
	)
	if k == 0 {
		tile.first = 1
	}
	if s.bytes != nil {
		if t.coded() {
			expandCoded(t, s.bytes, w, n)
		} else {
			e.unpack(s.bytes, w, n)
		}
		w, own = s.bytes, false
	}
	if toDst {
		tile.outs = uintptr(s.stride * 4)
	}
	for b, r := 0, r0; b < blocks; {
		rows, count := e.splitRows(r1-r0, b, blocks)
		switch {
		case b == 0 && own:
			count = 1
			tile.prefetch(e, uintptr(w)+streamAhead(t, e.cost*rows), n*bytes, parts)
			tile.once()
		case b == 0:
			tile.prefetchNext(e, next, calls)
		case b == 1 && own:
			tile.prefetchNext(e, next, calls-parts)
		}
		tile.rows = uintptr(rows)
		acc := unsafe.Add(s.work, (r-r0)*Panel*4)
		out := acc
		if toDst {
			out = unsafe.Pointer(&s.dst[s.at(r, p)])
		}
		for i := range parts {
			tile.w = unsafe.Add(w, i*partBytes(t, e.lanes))
			tile.scale = unsafe.Add(w, i*e.lanes*2)
			tile.x = unsafe.Add(x, r*s.x.stride)
			tile.acc = unsafe.Add(acc, i*e.lanes*4)
			tile.out = unsafe.Add(out, i*e.lanes*4)
			e.runBlocks(&tile, count)
		}
		b, r = b+count, r+rows*count
	}
}

// runBlocks multiplies the given number of blocks. The next blocks prefetch from where these end.
func (e *engine) runBlocks(t *tile, count int) {
	t.blocks = uintptr(count)
	pf := t.pf + t.blocks*t.share
	e.run(t)
	t.pf = pf
}

// splitRows splits n rows into blocks, larger ones first. It returns the rows of block b, and how
// many blocks from b on have the same number.
func (e *engine) splitRows(n, b, blocks int) (rows, count int) {
	unit := 1
	if e.even {
		unit = 2
	}
	units := (n + unit - 1) / unit
	rows, most := units/blocks*unit, units%blocks // most blocks have one unit more
	count = blocks - b
	if b < most {
		rows, count = rows+unit, most-b
	}
	if short := units*unit - n; short > 0 && b+count == blocks { // the last has an odd number
		if count == 1 {
			return rows - short, 1
		}
		count--
	}
	return rows, count
}

// prefetch sets the tile for calls that are to prefetch the given bytes among them. Each block of
// rows counts as a call.
func (t *tile) prefetch(e *engine, from uintptr, bytes, calls int) {
	turns := max(1, int(t.n)/e.turn)
	count := turns * e.sparse
	t.dense = 0
	if count*calls*64 < bytes*15/16 {
		count = turns * e.dense
		t.dense = 1
	}
	t.pf, t.pfs = from, uintptr((bytes+calls*count-1)/(calls*count))
	t.share = uintptr(count) * t.pfs
}

// prefetchNext makes the tile prefetch next, which is multiplied only after the tile's own weights.
// If there are few bytes, the first-level cache holds them all until then.
func (t *tile) prefetchNext(e *engine, next ahead, calls int) {
	t.prefetch(e, uintptr(next.from), next.bytes, calls)
	if next.bytes <= sliceBytes/2 {
		t.once()
	}
}

// once marks the tile's prefetches as data that is not read again in this pass, if every line of it
// is prefetched. Such lines evict nothing from the last-level cache, so keys and values stay there.
// Measured on two cores of a Zen 5, servers with SmolLM2 in Q4_0, in turn: 4 callers are as fast as
// without, 8 and 16 callers 1.03 times as fast.
func (t *tile) once() { t.dense *= 2 }

// streamAhead returns the distance at which a call prefetches its own weights, given the cycles
// that it multiplies per step.
//
// Where farAhead is true it is two pages of 4 KiB, at whose end the processor's own prefetcher stops.
// Measured on two cores of a Zen 5, passes of Qwen3-0.6B's shape in Q8_0, Q4_0 and Q4_K, in turn, with
// prefetches to the first-level cache: against one page ahead and the second level, 1 and 2 rows take
// .96 of the time, 4 rows .91 to .95, 8 rows .87 to .95, 16 rows .92 to .97. One page with the nearer
// distances of other processors took .90 of theirs (1 and 2 rows), .82 (4), .94 (6).
//
// Elsewhere, the processor's own prefetcher only needs its gaps filled while a cache line takes few
// cycles; beyond that, loads are slow enough for everything to be requested well in time. Measured
// on one core of a Zen 4, in turn, with layers of 3072 × 1024: the far distance costs 4 rows of
// bf16 a third more than the near one, 3 of Q8_0 a quarter, one of Q4_K a seventh; the near one
// costs 5 rows of Q8_0 a fifth more. On two cores, which share the memory, it is a quarter of that.
func streamAhead(t Type, cycles int) uintptr {
	const near, far = 512, 8 << 10
	few := 5 // cycles per line
	if t >= Q4_K {
		few = 3
	}
	if !farAhead && cycles*64 <= few*stepBytes[t] {
		return near
	}
	return far
}

// partBytes returns the distance between two parts of a panel in a step.
func partBytes(t Type, lanes int) int {
	if t == F16 {
		return lanes * 2
	}
	return lanes * 4 // integers: four elements of each output
}
