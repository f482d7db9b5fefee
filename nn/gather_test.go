package nn

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Rows gathered from an earlier result, some twice and some not at all, which later operations read.
func TestGatherGradient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		n, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 30).Draw(t, "columns")
		x := g.source(t, r, "x", n, cols)
		l := g.linear(t, r, "w", cols, cols, true)
		rows := rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 1, 50).Draw(t, "gathered")
		g.run = func() Mat {
			m := x()
			dst := g.exec.Mat(new(Buffer), len(rows), cols)
			g.exec.Gather(m, rows, dst)
			for i, row := range rows {
				for j, v := range dst.Row(i) {
					if v != m.Row(int(row))[j] {
						t.Fatalf("row %d is not row %d of the source", i, row)
					}
				}
			}
			out := g.exec.Mat(new(Buffer), len(rows), cols)
			g.exec.Linear(Source{X: dst, Act: GELU}, Proj{Linear: &l, Dst: out})
			return out
		}
		g.draw(r)
		g.check(t, r)
	})
}
