// Products and the parts that workers share.

package gemm

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Mul computes dst[r·stride + o] = Σₖ W[o,k]·x[r,k] for every row r of x and every output o
// of panels [p0, p1). Disjoint ranges of panels may run in parallel. In steady state it allocates nothing.
//
// A range should be long enough, about 256 KiB of weights, for the first misses of a new stream to
// be negligible; at a quarter of that they make a pass of 16 rows about 10 % slower.
func (m *Matrix) Mul(dst []float32, stride int, x *Input, p0, p1 int) {
	m.MulPart(Part{X: x, To: x.Rows(), P0: p0, P1: p1, Dst: dst, Stride: stride})
}

// Part is a part of a product: rows [From, To) of X by panels [P0, P1). The results of row r and panel p go to
// Dst[(r-From)·Stride + (p-Base)·Panel].
type Part struct {
	X        *Input
	From, To int
	P0, P1   int
	Dst      []float32
	Stride   int
	Base     int

	// Next is where the worker will probably multiply next: the first weights there are fetched
	// meanwhile. Fetched is the Next of its previous part. Both may be wrong or empty.
	Next, Fetched Place

	Scratch *Scratch // the worker's; nil: one from a pool
}

// Place is a panel of a matrix.
type Place struct {
	M     *Matrix
	Panel int
}

// MulPart computes a part of a product, like Mul. Parts whose results do not overlap may run in parallel.
func (m *Matrix) MulPart(a Part) {
	x := a.X
	p0 := a.P0
	p1 := a.P1
	if x.t != m.t.Activations() || x.in != m.in {
		panic(fmt.Sprintf("gemm: input of %d %v activations for a matrix of %d %v", x.in, x.t, m.in, m.t))
	}
	if p0 < 0 || p1 > m.Panels() || a.From < 0 || a.To > x.n || a.Base > p0 {
		panic(fmt.Sprintf("gemm: rows [%d, %d) of %d, panels [%d, %d) of %d, from %d", a.From, a.To, x.n, p0,
			p1, m.Panels(), a.Base))
	}
	if a.From >= a.To || p0 >= p1 {
		return
	}
	if end := min(p1*Panel, m.out) - a.Base*Panel; a.Stride < end || len(a.Dst) < (a.To-a.From-1)*a.Stride+end {
		panic(fmt.Sprintf("gemm: %d results with stride %d cannot hold %d rows of outputs from %d up to %d", len(a.Dst), a.Stride,
			a.To-a.From, a.Base*Panel, end))
	}
	if e, ok := engineFor(m.t, x.level, x.pairs); ok {
		s := pass{e: e, m: m, dst: a.Dst, stride: a.Stride, shift: -a.Base, x: x, r0: a.From, r1: a.To, base: a.From,
			warm: a.Fetched == Place{m, p0}, scratch: a.Scratch}
		if n := a.Next; n.M != nil && n.Panel < n.M.Panels() {
			s.then = ahead{unsafe.Pointer(&n.M.data[n.Panel*n.M.panel]), min(sliceBytes, n.M.panel)}
		}
		s.run(p0, p1)
	} else {
		mulPortable(m, a.Dst, a.Stride, -a.Base, x, a.From, a.To, a.From, p0, p1)
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(x)
	runtime.KeepAlive(a.Next.M)
}
