package autograd

import "github.com/grovellm/grove/internal/nn"

func (t recorder) ConvolveBlock(c *nn.BlockConvolution, after int, before []int32, x, added, dst nn.Mat) {
	t.record(&blockConvolution{c, after, before, x, added, dst})
}

type blockConvolution struct {
	c             *nn.BlockConvolution
	after         int
	before        []int32
	x, added, dst nn.Mat
}

// backward computes, with w the weights of a tap t of row i and d the gradient of the results,
//
//	dx(i−t) += w·d(i)    dw = d(i)·x(i−t), which is the gradient of the base, and, summed over a group, of what the row added
func (r *blockConvolution) backward(t *Tape) {
	d, ok := Grad(r.dst)
	if !ok {
		return
	}
	dx, below := Grad(r.x)
	dAdded, added := Grad(r.added)
	width := r.x.Cols
	t.perRow(r.x.Rows, func(i int) {
		for tap := range r.c.Taps {
			from, of := r.c.At(r.after, tap, width)
			if next := i + tap; below && next < r.x.Rows && int(r.before[next]) >= tap {
				base, more := r.c.Base[from:], r.added.Row(next)[of:]
				for k, g := range d.Row(next) {
					dx.Row(i)[k] += g * (base[k] + more[k/r.c.Group])
				}
			}
			if added && int(r.before[i]) >= tap {
				x := r.x.Row(i - tap)
				for k, g := range d.Row(i) {
					dAdded.Row(i)[of+k/r.c.Group] += g * x[k]
				}
			}
		}
	})
	base := t.gradOf(r.c.Base)
	if base == nil {
		return
	}
	t.rowsInto(r.x.Rows, [][]float32{base}, func(from, to int, part [][]float32) {
		for i := from; i < to; i++ {
			for tap := range min(r.c.Taps, int(r.before[i])+1) {
				at, _ := r.c.At(r.after, tap, width)
				x := r.x.Row(i - tap)
				for k, g := range d.Row(i) {
					part[0][at+k] += g * x[k]
				}
			}
		}
	})
}
