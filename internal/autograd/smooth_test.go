package autograd

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
)

// The loss of states near their targets and far from them, and its gradient with respect to the states' source.
func TestSmoothL1(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		n, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 30).Draw(t, "columns")
		x := g.source(t, r, "x", n, cols)
		y := nn.Mat{Rows: n, Cols: cols, Stride: cols, Data: randomRow(r, n*cols)}
		scale := float32(rapid.Float64Range(0.1, 3).Draw(t, "scale"))
		loss := func() float64 { return float64(scale) * g.tape.SmoothL1(x(), y, scale).Sum }
		g.draw(r)
		g.params.ZeroGrad()
		g.tape.Reset()
		got := loss()
		g.tape.Backward()
		g.tape.Detach()
		m, want := x(), 0.0
		for i := range n {
			for j, v := range m.Row(i) {
				if d := math.Abs(float64(v) - float64(y.Row(i)[j])); d < 1 {
					want += d * d / 2
				} else {
					want += d - 0.5
				}
			}
		}
		want *= float64(scale) / float64(cols)
		if math.Abs(got-want) > 1e-5*(1+want) {
			t.Fatalf("loss %g, want %g", got, want)
		}
		g.differences(t, r, loss, want)
	})
}
