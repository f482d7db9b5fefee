package autograd

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
)

// Residual blocks x + SiLU(W·x + b), one after the other, on rows wider than a part.
func TestAddSiLUGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		n, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.SampledFrom([]int{1, 7, 32, 300}).Draw(t, "columns")
		first := g.source(t, r, "x", n, cols)
		blocks := []nn.Linear{g.linear(t, r, "a", cols, cols, true), g.linear(t, r, "b", cols, cols, false)}
		g.run = func() nn.Mat {
			x := first()
			for i := range blocks {
				y, out := g.exec.Mat(new(nn.Buffer), n, cols), g.exec.Mat(new(nn.Buffer), n, cols)
				g.exec.Normalise(nil, x, out)
				g.exec.Linear(nn.Source{X: x}, nn.Proj{Linear: &blocks[i], Dst: y})
				g.exec.AddSiLU(out, y)
				for j, v := range out.Row(0) {
					z := float64(y.Row(0)[j])
					if want := float64(x.Row(0)[j]) + z/(1+math.Exp(-z)); math.Abs(float64(v)-want) > 1e-5*(1+math.Abs(want)) {
						t.Fatalf("element %d of %d is %g, want %g", j, cols, v, want)
					}
				}
				x = out
			}
			return x
		}
		g.draw(r)
		g.check(t, r)
	})
}

// Rows that are gathered from an earlier result, some twice and some not at all, and read by later operations.
func TestGatherGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		n, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 30).Draw(t, "columns")
		x := g.source(t, r, "x", n, cols)
		l := g.linear(t, r, "w", cols, cols, true)
		rows := rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 1, 50).Draw(t, "gathered")
		g.run = func() nn.Mat {
			m := x()
			dst := g.exec.Mat(new(nn.Buffer), len(rows), cols)
			g.exec.Gather(m, rows, dst)
			for i, row := range rows {
				for j, v := range dst.Row(i) {
					if v != m.Row(int(row))[j] {
						t.Fatalf("row %d is not row %d of the source", i, row)
					}
				}
			}
			out := g.exec.Mat(new(nn.Buffer), len(rows), cols)
			g.exec.Linear(nn.Source{X: dst, Act: nn.GELU}, nn.Proj{Linear: &l, Dst: out})
			return out
		}
		g.draw(r)
		g.check(t, r)
	})
}
