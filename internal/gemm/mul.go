package gemm

import (
	"fmt"
	"runtime"
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
	mulPortable(m, dst, stride, x, p0, p1)
	runtime.KeepAlive(m)
}
