package gemm

import (
	"fmt"
	"unsafe"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// The panels of a product, of bf16 or Q8_0, may also lie in memory of the caller, who writes them
// element by element: the keys and values of attention, whose positions are outputs of one product
// and inputs of the next. Panels are small there, so the work that their products have in common is
// done once, in advance.

// PanelProduct multiplies rows of an input by panels in the caller's memory.
type PanelProduct struct {
	x     *Input
	from  int
	rows  int
	e     engine
	asm   bool
	split int // the most rows in a kernel call
	t     tile
}

// ByPanels prepares products of rows [from, to) of x, an input of BF16 or Q8_0.
func (x *Input) ByPanels(from, to int) PanelProduct {
	if x.t != BF16 && x.t != Q8_0 || from < 0 || from > to || to > x.n {
		panic(fmt.Sprintf("gemm: rows [%d, %d) of %d %v", from, to, x.n, x.t))
	}
	l := PanelProduct{x: x, from: from, rows: to - from}
	l.e, l.asm = engineFor(x.t, x.level, x.pairs)
	if l.asm {
		l.e.forRows(l.rows)
		if l.e.inMemory { // results are not separate, as such sums would be
			l.e = engineOf(l.e.id)
		}
		l.split = l.e.rows
		l.t.xs = uintptr(x.stride)
	}
	return l
}

// Mul multiplies elements at, at+1, … of the rows by the same number of inputs of a panel, w, in
// Matrix's packed form: [inputs/2][Panel][2]bf16 for BF16, blocks (blocks.go) for Q8_0. at must be
// a multiple of 2, or of 32. The results of the r-th row go to dst[r·stride:]; with add, for which
// stride must be Panel, each sum continues from the value there. The chain is that of a Matrix of
// the type. next is fetched into the cache meanwhile. Nothing is allocated.
func (l *PanelProduct) Mul(dst []float32, stride, at int, w, next []byte, add bool) {
	x := l.x
	step, k := stepBytes[x.t], stepK[x.t]
	n := len(w) / step
	if at < 0 || at%k != 0 || len(w)%step != 0 || at/k+n > steps(x.t, x.in) {
		panic(fmt.Sprintf("gemm: elements from %d of %d by a panel of %d bytes", at, x.in, len(w)))
	}
	if l.rows == 0 {
		return
	}
	if stride < Panel || add && stride != Panel || len(dst) < (l.rows-1)*stride+Panel {
		panic(fmt.Sprintf("gemm: %d results with stride %d cannot hold %d rows, on top of what they are: %t", len(dst), stride, l.rows, add))
	}
	row := x.buf[l.from*x.stride+xOffset(x.t, at/k, x.pairs):]
	if l.asm && n > 0 {
		l.tiled(dst, stride, unsafe.Pointer(&row[0]), unsafe.Pointer(&w[0]), n, next, add)
		return
	}
	for r := range l.rows {
		acc := (*[Panel]float32)(dst[r*stride:])
		if !add {
			clear(acc[:])
		}
		if x.t == BF16 {
			rowBF16(acc, w, row[r*x.stride:], x.pairs)
		} else {
			blockTypes[x.t].row(acc, w, row[r*x.stride:])
		}
	}
}

func (l *PanelProduct) tiled(dst []float32, stride int, x, w unsafe.Pointer, steps int, next []byte, add bool) {
	t, e := &l.t, &l.e
	parts := Panel / e.lanes
	t.n = uintptr(steps)
	t.outs = uintptr(stride * 4)
	t.first = 1
	if add {
		t.first = 0
	}
	blocks := (l.rows + l.split - 1) / l.split
	t.pf = uintptr(w)
	t.pfs = 0
	t.share = 0
	t.dense = 0
	if next != nil {
		t.prefetch(e, uintptr(unsafe.Pointer(&next[0])), len(next), blocks*parts)
	}
	for b, r := 0, 0; b < blocks; {
		rows, count := e.splitRows(l.rows, b, blocks)
		t.rows = uintptr(rows)
		out := unsafe.Pointer(&dst[r*stride])
		for i := range parts {
			t.w = unsafe.Add(w, i*partBytes(l.x.t, e.lanes))
			t.scale = unsafe.Add(w, i*e.lanes*2)
			t.x = unsafe.Add(x, r*l.x.stride)
			t.out = unsafe.Add(out, i*e.lanes*4)
			t.acc = t.out
			e.runBlocks(t, count)
		}
		b, r = b+count, r+rows*count
	}
}

// fewTile is the work of one call of the kernel for few rows and several panels.
type fewTile struct {
	w, next [fewPanels]unsafe.Pointer
	x       unsafe.Pointer
	xs      uintptr // bytes from one row to the next
	n       uintptr // steps
	out     unsafe.Pointer
	outs    uintptr // bytes from one row's results to the next row's
	apart   uintptr // and from one panel's to the next panel's
	add     uintptr
	rows    uintptr
}

const (
	fewPanels = 4
	fewPairs  = 2 // rows of pairs
)

// MulAll is Mul for several panels of one size. The results of the i-th go to dst[i·apart:]; the
// same number of nexts are fetched meanwhile.
func (l *PanelProduct) MulAll(dst []float32, apart, stride, at int, ws, nexts [][]byte, add bool) {
	i := 0
	if l.x.pairs && l.asm && l.rows > 0 && l.rows <= fewPairs {
		for ; i+fewPanels <= len(ws); i += fewPanels {
			l.few(dst[i*apart:], apart, stride, at, ws[i:i+fewPanels], nexts[i:i+fewPanels], add)
		}
	}
	for ; i < len(ws); i++ {
		l.Mul(dst[i*apart:], stride, at, ws[i], nexts[i], add)
	}
}

// few is MulAll for as many panels as the kernel takes.
func (l *PanelProduct) few(dst []float32, apart, stride, at int, ws, nexts [][]byte, add bool) {
	const step = Panel * 4
	x, size := l.x, len(ws[0])
	if at < 0 || at%2 != 0 || size == 0 || size%step != 0 || at/2+size/step > (x.in+1)/2 || apart < 0 || stride < Panel ||
		len(dst) < (fewPanels-1)*apart+(l.rows-1)*stride+Panel {
		panic(fmt.Sprintf("gemm: elements from %d of %d by panels of %d bytes, with %d results, %d and %d apart", at, x.in, size,
			len(dst), apart, stride))
	}
	t := fewTile{
		x:  unsafe.Pointer(&x.buf[l.from*x.stride+xOffset(BF16, at/2, true)]),
		xs: uintptr(x.stride), n: uintptr(size / step), out: unsafe.Pointer(&dst[0]), outs: uintptr(stride * 4),
		apart: uintptr(apart * 4), rows: uintptr(l.rows),
	}
	if add {
		t.add = 1
	}
	for i, w := range ws {
		w = w[:size]
		t.w[i], t.next[i] = unsafe.Pointer(&w[0]), unsafe.Pointer(&w[0])
		if n := nexts[i]; len(n) >= size {
			t.next[i] = unsafe.Pointer(&n[0])
		}
	}
	mulFew(&t)
}

// RoundBF16 rounds v to bf16 as in SetRow.
func RoundBF16(dst []uint16, v []float32) {
	dst = dst[:len(v)]
	l := cpu.Active()
	i := 0
	if pairsAt(l) {
		i = pairRow(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)*2), v)
	}
	for ; i < len(v); i++ {
		dst[i] = toBF16(v[i])
	}
}
