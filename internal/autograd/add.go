package autograd

import (
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

func (t recorder) Add(x, y nn.Mat, act nn.Activation) { t.record(&addRecord{x, y, act}) }

// addRecord is x += y; backwards, dy += dx, and x's own gradient is unchanged. With SiLU it is x += y·σ(y).
type addRecord struct {
	x, y nn.Mat
	act  nn.Activation
}

func (r *addRecord) backward(t *Tape) {
	dx, ok := Grad(r.x)
	dy, ok2 := Grad(r.y)
	switch {
	case !ok || !ok2:
	case r.act == nn.SiLU:
		t.perRow(dy.Rows, func(i int) { siluBackward(dy.Row(i), dx.Row(i), r.y.Row(i)) })
	default:
		t.add(dy, dx)
	}
}

// add computes x += y for gradients.
func (t *Tape) add(x, y nn.Mat) { t.perRow(x.Rows, func(i int) { simd.Add(x.Row(i), y.Row(i)) }) }

func (t recorder) Gather(src nn.Mat, rows []int32, dst nn.Mat) {
	t.record(&gatherRecord{src, dst, rows})
}

// gatherRecord is copied rows. The list of rows must not change until their gradients are added back.
type gatherRecord struct {
	src, dst nn.Mat
	rows     []int32
}

func (r *gatherRecord) backward(*Tape) {
	dx, ok := Grad(r.src)
	dy, ok2 := Grad(r.dst)
	if !ok || !ok2 {
		return
	}
	for i, row := range r.rows {
		simd.Add(dx.Row(int(row)), dy.Row(i))
	}
}
