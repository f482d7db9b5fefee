package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/testing/cases"
)

// drawRecurrence draws rows in the order of their steps; each continues from a row of the previous
// step or from one that is carried in.
func drawRecurrence(t *rapid.T) (r Recurrence, n int) {
	r.Carried = rapid.IntRange(1, 4).Draw(t, "carried")
	first, before := 0, r.Carried // bounds of the previous step's rows
	for range rapid.IntRange(1, 5).Draw(t, "steps") {
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			r.Before = append(r.Before, int32(rapid.IntRange(first, before-1).Draw(t, "before")))
		}
		first, before = before, r.Carried+len(r.Before)
		r.Ends = append(r.Ends, len(r.Before))
	}
	return r, len(r.Before)
}

// lstmRow computes a row by the definition, in f64.
func lstmRow(row func(w *gemm.Matrix, i int) []float32, l *LSTM, x, h, c []float32) (state, cell []float32) {
	n := l.In.W.Out() / 4
	gate := func(i int) float64 {
		sum := 0.0
		add := func(l *Linear, x []float32) {
			for j, w := range row(l.W, i) {
				sum += float64(w) * float64(x[j])
			}
			if l.Bias != nil {
				sum += float64(l.Bias[i])
			}
		}
		add(&l.In, x)
		if h != nil {
			add(&l.State, h)
		}
		return sum
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for d := range n {
		v := sigmoid(gate(d)) * math.Tanh(gate(2*n+d))
		if h != nil {
			v += sigmoid(gate(n+d)) * float64(c[d])
		}
		state, cell = append(state, float32(sigmoid(gate(3*n+d))*math.Tanh(v))), append(cell, float32(v))
	}
	return state, cell
}

// A layer computes the definition, over rows that start from zeros and over rows that
// continue from one another.
func TestLSTM(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
		in, width := rapid.IntRange(1, 20).Draw(t, "in"), rapid.IntRange(1, 18).Draw(t, "width")
		l := LSTM{In: *randomHead(r, gemm.F32, 4*width, in, true), State: *randomHead(r, gemm.F32, 4*width, width,
			rapid.Bool().Draw(t, "bias"))}
		for _, part := range []*Linear{&l.In, &l.State} {
			part.Scale, part.Cap = 0, 0
		}
		order, n := drawRecurrence(t)
		by := &order
		if !rapid.Bool().Draw(t, "recurs") {
			by, order = nil, Recurrence{}
		}
		x := randomMat(r, n, in)
		h, c := randomMat(r, order.Carried+n, width), randomMat(r, order.Carried+n, width)
		e := NewExec(par.New(rapid.IntRange(1, 3).Draw(t, "threads")))
		defer e.pool.Close()
		e.LSTM(&l, Source{X: x}, by, h, c, new(LSTMBuffers))
		row := func(w *gemm.Matrix, i int) []float32 {
			v := make([]float32, w.In())
			w.Row(v, i)
			return v
		}
		for i := range n {
			var state, cell []float32
			if by != nil {
				state, cell = h.Row(int(order.Before[i])), c.Row(int(order.Before[i]))
			}
			wantH, wantC := lstmRow(row, &l, x.Row(i), state, cell)
			for j := range wantH {
				gotH, gotC := h.Row(order.Carried + i)[j], c.Row(order.Carried + i)[j]
				if math.Abs(float64(gotH-wantH[j])) > 2e-6 || math.Abs(float64(gotC-wantC[j])) > 1e-5 {
					t.Fatalf("row %d: state %g and cell %g, want %g and %g", i, gotH, gotC, wantH[j], wantC[j])
				}
			}
		}
	})
}

// A row's bits are the same in its own pass and among other rows, on any number of
// threads and at every kernel level.
func TestLSTMSameBits(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 10))
		in, width := rapid.IntRange(1, 90).Draw(t, "in"), rapid.IntRange(1, 70).Draw(t, "width")
		typ := rapid.SampledFrom([]gemm.Type{gemm.F32, gemm.BF16}).Draw(t, "type")
		l := LSTM{In: *randomHead(r, typ, 4*width, in, true), State: *randomHead(r, typ, 4*width, width, true)}
		order, n := drawRecurrence(t)
		x, begin := randomMat(r, n, in), randomMat(r, 2*order.Carried, width)
		run := func(threads int, by *Recurrence, rows []int32, h, c Mat) {
			e := NewExec(par.New(threads))
			defer e.pool.Close()
			src := NewMat(len(rows), in)
			for i, row := range rows {
				copy(src.Row(i), x.Row(int(row)))
			}
			if rapid.Bool().Draw(t, "held") {
				e.Hold()
				defer e.Release()
			}
			e.LSTM(&l, Source{X: src}, by, h, c, new(LSTMBuffers))
		}
		level := func() func() { return cpu.Use(rapid.SampledFrom(cpu.Levels()).Draw(t, "level")) }
		carry := func(h, c Mat, row, from int) {
			copy(h.Row(row), begin.Row(2*from))
			copy(c.Row(row), begin.Row(2*from+1))
		}
		h, c := NewMat(order.Carried+n, width), NewMat(order.Carried+n, width)
		for k := range order.Carried {
			carry(h, c, k, k)
		}
		var all []int32
		for i := range n {
			all = append(all, int32(i))
		}
		restore := level()
		run(rapid.IntRange(1, 4).Draw(t, "threads"), &order, all, h, c)
		restore()
		defer level()()
		for i := range n {
			one, cell := NewMat(2, width), NewMat(2, width)
			before := int(order.Before[i])
			copy(one.Row(0), h.Row(before))
			copy(cell.Row(0), c.Row(before))
			run(1, &Recurrence{Carried: 1, Before: []int32{0}, Ends: []int{1}}, all[i:i+1], one, cell)
			for j := range width {
				got, want := h.Row(order.Carried + i)[j], one.Row(1)[j]
				if math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("row %d of %d, number %d: %g among others, %g alone", i, n, j, got, want)
				}
			}
		}
	})
}
