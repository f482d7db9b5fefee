package autograd

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
)

// Two layers, over rows that start from zeros and over rows that continue from one another.
func TestLSTMGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		in, width := rapid.IntRange(1, 20).Draw(t, "in"), rapid.IntRange(1, 18).Draw(t, "width")
		n := rapid.IntRange(1, 20).Draw(t, "rows")
		x, y := g.source(t, r, "x", n, in), g.source(t, r, "y", n, 3)
		var by *nn.Recurrence
		if rapid.Bool().Draw(t, "recurs") {
			by = &nn.Recurrence{Carried: rapid.IntRange(1, 4).Draw(t, "carried")}
			for i := 0; i < n; {
				from := max(0, i+by.Carried-6) // rows of the previous step, or older ones
				to := i + by.Carried
				for range min(1+r.IntN(6), n-i) {
					by.Before = append(by.Before, int32(from+r.IntN(to-from)))
				}
				i = len(by.Before)
				by.Ends = append(by.Ends, i)
			}
		}
		carried := 0
		if by != nil {
			carried = by.Carried
		}
		var layers [2]nn.LSTM
		for i, cols := range []int{in + 3, width} {
			layers[i].In = g.linear(t, r, "in", 4*width, cols, true)
			if by != nil {
				layers[i].State = g.linear(t, r, "state", 4*width, width, rapid.Bool().Draw(t, "bias"))
			}
		}
		begin := randomMat(r, 4*carried, width)
		g.run = func() nn.Mat {
			src := nn.Source{X: x(), With: y()}
			for i := range layers {
				h, c := g.exec.Mat(new(nn.Buffer), carried+n, width), g.exec.Mat(new(nn.Buffer), carried+n, width)
				for k := range carried {
					copy(h.Row(k), begin.Row(4*k+2*i))
					copy(c.Row(k), begin.Row(4*k+2*i+1))
				}
				g.exec.LSTM(&layers[i], src, by, h, c, new(nn.LSTMBuffers))
				src = nn.Source{X: h.Slice(carried, carried+n)}
			}
			return src.X
		}
		g.draw(r)
		g.check(t, r)
	})
}
