package autograd

import (
	"math"

	"github.com/grovellm/grove/internal/nn"
)

// normBackward adds to dx the gradient of norm(x), given dy, and to dw and db the gradients of the
// norm's weights. With x̂ the normalised x, g = dy·w and n its width,
//
//	dx = (g − x̂·Σ(g·x̂)/n [− Σg/n when centred]) / σ      dw += dy·x̂      db += dy
//
// dw and db may be nil.
func normBackward(n *nn.Norm, dx, dy, x, dw, db []float32) {
	size := float64(len(x))
	var mean, sq float64
	if n.Center {
		for _, v := range x {
			mean += float64(v)
		}
		mean /= size
	}
	for _, v := range x {
		d := float64(v) - mean
		sq += d * d
	}
	inv, mu := float32(1/math.Sqrt(sq/size+float64(n.Eps))), float32(mean)
	w := n.Weight[:len(x)]
	dx, dy = dx[:len(x)], dy[:len(x)]
	var dot, sum float32
	for i, v := range x {
		g := dy[i] * w[i]
		dot += g * (v - mu) * inv
		sum += g
	}
	dot /= float32(size)
	sum /= float32(size)
	if !n.Center {
		sum = 0
	}
	for i, v := range x {
		dx[i] += inv * (dy[i]*w[i] - sum - (v-mu)*inv*dot)
	}
	if dw != nil {
		dw = dw[:len(x)]
		for i, v := range x {
			dw[i] += dy[i] * (v - mu) * inv
		}
	}
	if db != nil {
		for i, v := range dy {
			db[i] += v
		}
	}
}

// normBackward adds the gradient d of norm(rows) to the gradients of rows and of the norm's
// weights; without a norm, it adds d unchanged. x is the original rows.
func (t *Tape) normBackward(norm *nn.Norm, rows, x, d nn.Mat) {
	dx, ok := Grad(rows)
	if norm == nil {
		if ok {
			t.add(dx, d)
		}
		return
	}
	t.rowsInto(x.Rows, [][]float32{t.gradOf(norm.Weight), t.gradOf(norm.Bias)}, func(from, to int, part [][]float32) {
		into := make([]float32, x.Cols)
		for i := from; i < to; i++ {
			if ok {
				into = dx.Row(i)
			}
			normBackward(norm, into, d.Row(i), x.Row(i), part[0], part[1])
		}
	})
}

// normRecord is normalised or copied rows.
type normRecord struct {
	norm   *nn.Norm
	x, dst nn.Mat
	was    nn.Mat // x, which may be overwritten later
}

func (t recorder) Normalise(norm *nn.Norm, x, dst nn.Mat) {
	t.record(&normRecord{norm, x, dst, t.keepNormed(norm, x)})
}

func (r *normRecord) backward(t *Tape) {
	d, ok := Grad(r.dst)
	if !ok {
		return
	}
	if dx, _ := Grad(r.x); len(dx.Data) > 0 && &dx.Data[0] == &d.Data[0] { // in place: the output's gradient is used up
		defer t.arena.release(t.arena.mark())
		kept := t.plain(d.Rows, d.Cols)
		t.copyRows(kept, d)
		for i := range d.Rows {
			clear(d.Row(i))
		}
		d = kept
	}
	t.normBackward(r.norm, r.x, r.was, d)
}

// gradRows is the number of rows whose share of a weight's gradient one task sums. Shares are then
// added in order, so that the sum does not depend on the workers.
const gradRows = 64

// rowsInto runs f over chunks of rows, each with vectors of the given widths to add to (nil for a
// width of zero), and adds these up into sums.
func (t *Tape) rowsInto(n int, sums [][]float32, f func(from, to int, part [][]float32)) {
	chunks := (n + gradRows - 1) / gradRows
	width := 0
	for _, s := range sums {
		width += len(s)
	}
	defer t.arena.release(t.arena.mark())
	shares := t.arena.take(chunks * width)
	clear(shares)
	each(t.pool(), chunks, func(_, c int) {
		part, o := make([][]float32, len(sums)), c*width
		for i, s := range sums {
			if len(s) > 0 {
				part[i] = shares[o : o+len(s) : o+len(s)]
			}
			o += len(s)
		}
		f(c*gradRows, min((c+1)*gradRows, n), part)
	})
	for c := range chunks {
		o := c * width
		for _, s := range sums {
			for i := range s {
				s[i] += shares[o+i]
			}
			o += len(s)
		}
	}
}

// gradOf returns the gradient of a trained vector, nil for any other.
func (t *Tape) gradOf(v []float32) []float32 {
	if p := t.params.of(v); p != nil {
		return p.Grad
	}
	return nil
}
