package gemm

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Mul computes dst[r·stride + o] = Σₖ W[o,k]·x[r,k] for every row r of x and every output o
// of panels [p0, p1). Disjoint ranges of panels may run in parallel. It allocates nothing.
func (m *Matrix) Mul(dst []float32, stride int, x *Input, p0, p1 int) {
	if x.t != m.t || x.in != m.in {
		panic(fmt.Sprintf("gemm: input of %d %v activations for a matrix of %d %v", x.in, x.t, m.in, m.t))
	}
	if p0 < 0 || p1 > m.Panels() {
		panic(fmt.Sprintf("gemm: panels [%d, %d) of %d", p0, p1, m.Panels()))
	}
	if x.n == 0 || p0 >= p1 {
		return
	}
	if end := min(p1*Panel, m.out); stride < end || len(dst) < (x.n-1)*stride+end {
		panic(fmt.Sprintf("gemm: %d results with stride %d cannot hold %d rows of outputs up to %d", len(dst), stride, x.n, end))
	}
	if e, ok := engineFor(m.t, x.level, x.pairs); ok {
		mulTiled(&e, m, dst, stride, x, p0, p1)
	} else {
		mulPortable(m, dst, stride, x, p0, p1)
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(x)
}

// engine is an assembly kernel and what the tiling must know of it.
type engine struct {
	id    int
	lanes int // outputs in a call: a panel or a part of one
	rows  int // rows in a call, at most
	// A turn of the main loop does so many steps, and so many prefetches: all it can, or
	// a sparse few when many calls share the work.
	turn, dense, sparse int
}

// tile is what one call of a kernel works on: some steps of k, some rows, some outputs.
type tile struct {
	w     unsafe.Pointer // the weights of the first step
	x     unsafe.Pointer // the first row's activations there
	xs    uintptr        // bytes from a row to the next
	n     uintptr        // steps
	acc   unsafe.Pointer // [rows][Panel]f32 to resume from
	first uintptr        // 1: start from zero instead
	out   unsafe.Pointer // where the results go; may be acc
	outs  uintptr        // bytes from a row of them to the next
	pf    uintptr        // what to prefetch meanwhile: perhaps past the end of things, so no pointer
	pfs   uintptr        // bytes from one prefetch to the next
	dense uintptr        // 1: all prefetches, 0: the sparse ones
	rows  uintptr
	scale unsafe.Pointer // Q8_0 in parts of a panel: the scales of the first step
}

const (
	// A slice is at most sliceBytes of a panel. Two of them, and what else there is, must
	// stay in the second-level cache: the one being multiplied and the one on its way.
	sliceBytes = 32 << 10
	// chunkRows rows visit them at most; their accumulators take 8 KiB.
	chunkRows = 64
)

// mulTiled walks the weights in the order they lie in memory, slice by slice, and takes all
// rows (of a chunk) over a slice before the next. What keeps the sums in one order is that
// the accumulators of a row are put by and resumed, which does not change a bit of them.
//
// Meanwhile the calls prefetch the following slice to the second-level cache, each its
// share of the lines, so that memory streams without a pause while the rows are multiplied:
// a pass of 16 rows then takes the longer of the two times and not their sum. Few rows need
// no slices: one call takes the whole panel and prefetches the next.
func mulTiled(e *engine, m *Matrix, dst []float32, stride int, x *Input, p0, p1 int) {
	var (
		scratch   [chunkRows * Panel]float32
		t         = tile{xs: uintptr(x.stride)}
		acc       = unsafe.Pointer(&scratch)
		xs        = unsafe.Pointer(unsafe.SliceData(x.buf))
		total     = steps(m.t, m.in)
		stepBytes = stepBytes[m.t]
		parts     = Panel / e.lanes
		chunks    = (x.n + chunkRows - 1) / chunkRows
	)
	for p := p0; p < p1; p++ {
		w := unsafe.Pointer(&m.data[p*m.panel])
		full := (p+1)*Panel <= m.out
		for c := range chunks {
			r0, r1 := x.n*c/chunks, x.n*(c+1)/chunks
			blocks := (r1 - r0 + e.rows - 1) / e.rows
			calls := blocks * parts
			slice := total
			if calls > 1 {
				slices := (total*stepBytes + sliceBytes - 1) / sliceBytes
				slice = (total/slices + groupBlocks) &^ (groupBlocks - 1) // whole groups of Q8_0
			}
			for s := 0; s < total; s += slice {
				n := min(slice, total-s)
				last := s+n == total
				ws, bytes := unsafe.Add(w, s*stepBytes), n*stepBytes
				t.n = uintptr(n)
				t.first = 0
				if s == 0 {
					t.first = 1
				}
				// The share of a call: count prefetches, pfs apart.
				turns := max(1, n/e.turn)
				count := turns * e.sparse
				t.dense = 0
				if count*calls*64 < bytes*15/16 {
					count = turns * e.dense
					t.dense = 1
				}
				t.pf, t.pfs = uintptr(ws)+uintptr(bytes), uintptr((bytes+calls*count-1)/(calls*count))
				if last && (c < chunks-1 || p == p1-1) {
					t.pf, t.pfs = uintptr(ws), 0 // the panel over again, or another's task
				}
				for b := range blocks {
					ra, rb := r0+(r1-r0)*b/blocks, r0+(r1-r0)*(b+1)/blocks
					t.rows = uintptr(rb - ra)
					t.x = unsafe.Add(xs, ra*x.stride+xOffset(m.t, s, x.pairs))
					work := unsafe.Add(acc, (ra-r0)*Panel*4)
					out := work
					t.outs = Panel * 4
					if last && full {
						out, t.outs = unsafe.Pointer(&dst[ra*stride+p*Panel]), uintptr(stride*4)
					}
					for part := range parts {
						t.acc = unsafe.Add(work, part*e.lanes*4)
						t.out = unsafe.Add(out, part*e.lanes*4)
						t.w = unsafe.Add(ws, part*partBytes(m.t, e.lanes))
						t.scale = unsafe.Add(ws, part*e.lanes*2)
						e.run(&t)
						t.pf += uintptr(count) * t.pfs
					}
				}
			}
			if !full {
				for r := r0; r < r1; r++ {
					copy(dst[r*stride+p*Panel:r*stride+m.out], scratch[(r-r0)*Panel:])
				}
			}
		}
	}
}

// partBytes is the distance between two parts of a panel in a step.
func partBytes(t Type, lanes int) int {
	if t == F16 {
		return lanes * 2
	}
	return lanes * 4 // of Q8_0: four elements of each output
}
