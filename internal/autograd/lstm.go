package autograd

import "github.com/grovellm/grove/internal/nn"

func (t recorder) Cell(gates, before, h, c nn.Mat) { t.record(&cellRecord{gates, before, h, c}) }

// cellRecord is states h and cells c made from gates, which by then hold σ(i), σ(f), tanh(g) and σ(o).
type cellRecord struct{ gates, before, h, c nn.Mat }

func (r *cellRecord) backward(t *Tape) {
	dGates, ok := Grad(r.gates)
	dh, ok2 := Grad(r.h)
	dc, ok3 := Grad(r.c)
	if !ok || !ok2 || !ok3 {
		return
	}
	dBefore, carried := Grad(r.before)
	each(t.pool(), r.h.Rows, func(_, row int) {
		a := r.gates.Row(row)
		d := dGates.Row(row)
		n := r.h.Cols
		th := make([]float32, n)
		nn.Tanh(th, r.c.Row(row))
		for k, dState := range dh.Row(row) {
			i := a[k]
			f := a[n+k]
			g := a[2*n+k]
			o := a[3*n+k]
			dCell := dc.Row(row)[k] + dState*o*(1-th[k]*th[k])
			d[k] += dCell * g * i * (1 - i)
			d[2*n+k] += dCell * i * (1 - g*g)
			d[3*n+k] += dState * th[k] * o * (1 - o)
			if r.before.Data != nil {
				d[n+k] += dCell * r.before.Row(row)[k] * f * (1 - f)
			}
			if carried {
				dBefore.Row(row)[k] += dCell * f
			}
		}
	})
}
