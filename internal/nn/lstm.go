package nn

import "github.com/grovellm/grove/internal/kernels/simd"

// LSTM is a layer of long short-term memory (Hochreiter and Schmidhuber, 1997). H is its width. The
// 4H rows of its matrices are the gates i, f, g and o in PyTorch's order. A row's state h and its
// cell c follow from its input x and from h' and c' of the row before:
//
//	i f g o = In·x + State·h'      c = σ(f)·c' + σ(i)·tanh(g)      h = σ(o)·tanh(c)
//
// State without a matrix means that every row begins with h' and c' of zeros.
type LSTM struct{ In, State Linear }

// Recurrence defines which row comes before each row of a recurrent layer. The rows are in the
// order of their steps: a row comes after those of the step before. States of earlier passes may be
// carried in, as rows before the first.
type Recurrence struct {
	Carried int   // rows that are carried in
	Ends    []int // of each step, one past its last row

	// Before is, for each row, the row before it: less than Carried for a carried one, else Carried
	// plus the number of a row.
	Before []int32
}

// LSTMBuffers is the activation memory of a layer.
type LSTMBuffers struct{ gates, more, state, cell Buffer }

// LSTM runs a layer over the rows of src. It leaves their states in h and their cells in c. Without
// a recurrence, each row begins with zeros, and h and c have one row for each. With one, h and c
// begin with the carried rows, which the caller fills.
func (e *Exec) LSTM(l *LSTM, src Source, r *Recurrence, h, c Mat, m *LSTMBuffers) {
	n := src.X.Rows
	gates := e.Mat(&m.gates, n, 4*h.Cols)
	e.Hold()
	e.Linear(src, Proj{Linear: &l.In, Dst: gates})
	if r == nil {
		e.cell(gates, Mat{}, h, c)
		e.Release()
		return
	}
	from := 0
	for _, to := range r.Ends {
		n := to - from
		state := e.Mat(&m.state, n, h.Cols)
		cell := e.Mat(&m.cell, n, h.Cols)
		more := e.Mat(&m.more, n, 4*h.Cols)
		e.Gather(h, r.Before[from:to], state)
		e.Gather(c, r.Before[from:to], cell)
		step := gates.Slice(from, to)
		e.Linear(Source{X: state}, Proj{Linear: &l.State, Dst: more, To: step})
		e.cell(step, cell, h.Slice(r.Carried+from, r.Carried+to), c.Slice(r.Carried+from, r.Carried+to))
		from = to
	}
	e.Release()
}

// cell makes states and cells from gates, which become σ(i), σ(f), tanh(g) and σ(o). before is the
// cells of the preceding rows; without data they are zeros.
func (e *Exec) cell(gates, before, h, c Mat) {
	if e.records != nil {
		e.records.Cell(gates, before, h, c)
	}
	j := e.plan.cells.next(&e.plan)
	*j = cellJob{gates, before, h, c}
	e.OwnRows(gates.Rows, gates.Cols, j)
}

type cellJob struct{ gates, before, h, c Mat }

func (j *cellJob) Do(_, row int) {
	a := j.gates.Row(row)
	h := j.h.Row(row)
	c := j.c.Row(row)
	n := len(h)
	i := a[:n]
	f := a[n : 2*n]
	g := a[2*n : 3*n]
	o := a[3*n : 4*n]
	simd.Scale(a[:2*n], -1)
	simd.Scale(g, 2)
	simd.Scale(o, -1)
	simd.Exp(a, a)
	for k := range n {
		i[k] = 1 / (1 + i[k])
		f[k] = 1 / (1 + f[k])
		o[k] = 1 / (1 + o[k])
		g[k] = 1 - 2/(1+g[k])
		c[k] = i[k] * g[k]
	}
	if j.before.Data != nil {
		for k, b := range j.before.Row(row) {
			c[k] += float32(f[k] * b)
		}
	}
	Tanh(h, c)
	for k := range n {
		h[k] *= o[k]
	}
}

// Tanh sets dst to tanh(x), which is 1 − 2/(1 + e^2x).
func Tanh(dst, x []float32) {
	for k, v := range x {
		dst[k] = 2 * v
	}
	simd.Exp(dst, dst)
	for k, v := range dst {
		dst[k] = 1 - 2/(1+v)
	}
}
