package autograd

import (
	"math"

	"github.com/grovellm/grove/internal/nn"
)

// SmoothL1 is the mean over columns of ½d² where |d| < 1 and |d| − ½ elsewhere, where d is x − y:
// the distance of states from their targets (Girshick, 2015). y is constant. scale multiplies the
// gradient of the rows' sum.
func (t *Tape) SmoothL1(x, y nn.Mat, scale float32) Loss {
	rows := make([]float64, x.Rows)
	each(t.pool(), x.Rows, func(_, i int) {
		b := y.Row(i)
		for j, v := range x.Row(i) {
			d := math.Abs(float64(v - b[j]))
			if d < 1 {
				rows[i] += d * d / 2
			} else {
				rows[i] += d - 0.5
			}
		}
	})
	if t.attached {
		t.record(&smoothRecord{x, y, scale / float32(x.Cols)})
	}
	l := Loss{Weight: float64(x.Rows), Rows: x.Rows}
	for _, v := range rows {
		l.Sum += v / float64(x.Cols)
	}
	return l
}

type smoothRecord struct {
	x, y  nn.Mat
	scale float32
}

func (r *smoothRecord) backward(t *Tape) {
	g, ok := Grad(r.x)
	if !ok {
		return
	}
	each(t.pool(), r.x.Rows, func(_, i int) {
		d, b := g.Row(i), r.y.Row(i)
		for j, v := range r.x.Row(i) {
			d[j] += r.scale * min(max(v-b[j], -1), 1)
		}
	})
}
