package autograd

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

// linearRecord is products of one source.
type linearRecord struct {
	src   nn.Source
	in    nn.Mat // the source as it entered the products: n × in
	x     nn.Mat // a copy of src.X if it is normalised (the residual stream is overwritten later), else src.X
	with  nn.Mat // the same for src.With
	projs []nn.Proj
}

func (t recorder) Linear(src nn.Source, projs []nn.Proj) (kept nn.Mat) {
	r := t.newLinear(src, projs)
	t.record(r)
	if r.madeInput() {
		kept = r.in
	}
	return kept
}

func (t *Tape) newLinear(src nn.Source, projs []nn.Proj) *linearRecord {
	r := &linearRecord{src: src, in: src.X, x: t.keepNormed(src.Norm, src.X), with: t.keepNormed(src.WithNorm, src.With),
		projs: projs}
	if r.madeInput() {
		r.in = t.plain(src.X.Rows, src.Cols())
	}
	return r
}

// keepNormed returns a copy of x, which may be overwritten, if the gradient of its norm needs one; else x.
func (t *Tape) keepNormed(norm *nn.Norm, x nn.Mat) nn.Mat {
	if norm == nil {
		return x
	}
	m := t.plain(x.Rows, x.Cols)
	t.copyRows(m, x)
	return m
}

// copyRows copies the leading columns of src to dst.
func (t *Tape) copyRows(dst, src nn.Mat) {
	t.perRow(dst.Rows, func(i int) { copy(dst.Row(i), src.Row(i)) })
}

// madeInput reports whether the product's input is computed from X rather than X itself.
func (r *linearRecord) madeInput() bool {
	return r.src.Norm != nil || r.src.Act != nn.None || r.src.With.Cols > 0
}

// needsInput reports whether the gradient continues to the source.
func (r *linearRecord) needsInput() bool {
	return r.src.X.Grad != nil || r.src.Norm != nil || r.src.With.Grad != nil || r.src.WithNorm != nil
}

func (r *linearRecord) backward(t *Tape) {
	defer t.arena.release(t.arena.mark())
	needIn := r.needsInput()
	din := t.plain(r.in.Rows, r.in.Cols)
	var weights [][2]nn.Mat
	for i, p := range r.projs {
		dy, _ := Grad(p.Dst)
		if p.Linear.Scale != 0 || p.Linear.Cap != 0 {
			for i := range dy.Rows {
				finishBackward(p.Linear, dy.Row(i), p.Dst.Row(i))
			}
		}
		if b := t.gradOf(p.Linear.Bias); b != nil {
			t.columnSums(b, dy)
		}
		if w := t.params.Of(p.Linear.W); w != nil {
			weights = append(weights, [2]nn.Mat{w.GradMat(), dy})
		}
		if !needIn {
			continue
		}
		dst := din
		if i > 0 {
			dst = t.plain(din.Rows, din.Cols)
		}
		t.products.mul(dst, t.transposed(p.Linear.W), dy)
		if i > 0 {
			t.add(din, dst)
		}
	}
	t.products.AddTMul(r.in, weights...)
	if needIn {
		r.sourceBackward(t, din)
	}
}

// sourceBackward takes the gradient of a product's input back to the data from which it was made.
func (r *linearRecord) sourceBackward(t *Tape, din nn.Mat) {
	src, x := &r.src, r.x
	switch {
	case src.With.Cols > 0:
		t.normBackward(src.Norm, src.X, x, din.Columns(0, x.Cols))
		t.normBackward(src.WithNorm, src.With, r.with, din.Columns(x.Cols, din.Cols))
	case src.Act == nn.SiLUMul:
		dg, _ := Grad(src.X)
		du, _ := Grad(src.Up)
		each(t.pool(), (x.Rows+gradRows-1)/gradRows, func(_, c int) {
			e := make([]float32, x.Cols)
			for i := c * gradRows; i < min((c+1)*gradRows, x.Rows); i++ {
				siluMulBackward(dg.Row(i), du.Row(i), din.Row(i), x.Row(i), src.Up.Row(i), e)
			}
		})
	case src.Act == nn.GELU:
		dx, _ := Grad(src.X)
		t.perRow(x.Rows, func(i int) { geluBackward(dx.Row(i), din.Row(i), x.Row(i)) })
	case src.Act == nn.SiLU:
		dx, _ := Grad(src.X)
		t.perRow(x.Rows, func(i int) { siluBackward(dx.Row(i), din.Row(i), x.Row(i)) })
	default:
		t.normBackward(src.Norm, src.X, x, din)
	}
}

// finishBackward turns the gradient with respect to a product's results y into that with respect to its sums.
func finishBackward(l *nn.Linear, dy, y []float32) {
	if l.Cap != 0 {
		for i, v := range y {
			dy[i] *= 1 - v/l.Cap*(v/l.Cap)
		}
	}
	if l.Scale != 0 {
		simd.Scale(dy, l.Scale)
	}
}

// siluMulBackward is the gradient of y = g·σ(g)·u: du += dy·g·σ, dg += dy·u·σ·(1 + g·(1−σ)).
// e is scratch.
func siluMulBackward(dg, du, dy, g, u, e []float32) {
	for i, v := range g {
		e[i] = -v
	}
	simd.Exp(e, e)
	dg = dg[:len(g)]
	du = du[:len(g)]
	dy = dy[:len(g)]
	u = u[:len(g)]
	e = e[:len(g)]
	for i, v := range g {
		s := 1 / (1 + e[i])
		du[i] += dy[i] * v * s
		dg[i] += dy[i] * u[i] * s * (1 + v*(1-s))
	}
}

// siluBackward is the gradient of y = x·σ(x): σ·(1 + x·(1−σ)).
func siluBackward(dx, dy, x []float32) {
	for i, v := range x {
		s := float32(1 / (1 + math.Exp(-float64(v))))
		dx[i] += dy[i] * s * (1 + v*(1-s))
	}
}

// geluBackward is the gradient of y = x·Φ(x): Φ(x) + x·φ(x).
func geluBackward(dx, dy, x []float32) {
	for i, v := range x {
		z := float64(v)
		cdf := 0.5 * math.Erfc(-z/math.Sqrt2)
		pdf := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		dx[i] += dy[i] * float32(cdf+z*pdf)
	}
}

// columnSums adds the sum of m's rows to dst.
func (t *Tape) columnSums(dst []float32, m nn.Mat) {
	t.rowsInto(m.Rows, [][]float32{dst}, func(from, to int, part [][]float32) {
		for i := from; i < to; i++ {
			simd.Add(part[0], m.Row(i))
		}
	})
}

// transposed returns W packed for dx = dy·W.
func (t *Tape) transposed(w *gemm.Matrix) *gemm.Matrix {
	if p := t.params.Of(w); p != nil {
		return p.wt
	}
	if m := t.frozen[w]; m != nil {
		return m
	}
	a := nn.Mat{Rows: w.Out(), Cols: w.In(), Stride: w.In(), Data: make([]float32, w.Out()*w.In())}
	for i := range a.Rows {
		w.Row(a.Row(i), i)
	}
	m, err := gemm.New(t.params.kind, a.Cols, a.Rows)
	if err != nil {
		panic(err) // no memory
	}
	t.products.packTransposed(m, a)
	t.frozen[w] = m
	return m
}

// embedRecord is rows that were looked up.
type embedRecord struct {
	p      *Param
	tokens []int32
	dst    nn.Mat
}

func (r *embedRecord) backward(t *Tape) {
	d, _ := Grad(r.dst)
	g := r.p.GradMat()
	for i, id := range r.tokens {
		simd.Add(g.Row(int(id)), d.Row(i))
	}
}

// Embed looks rows up in the masters of a trained table.
func (t recorder) Embed(table nn.Table, tokens []int32, dst nn.Mat) bool {
	w, ok := table.(*gemm.Matrix)
	if !ok || t.params.Of(w) == nil {
		return false
	}
	p := t.params.Of(w)
	for i, id := range tokens {
		copy(dst.Row(i), p.Data[int(id)*p.Cols:][:p.Cols])
	}
	t.record(&embedRecord{p, tokens, dst})
	return true
}
