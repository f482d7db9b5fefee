package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/testing/cases"
)

// Readers see the committed rows, or the last ones that a window covers, and nothing pending. They
// leave the cache unchanged, and give the same results next to others.
func TestReaders(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	cases.Check(t, 40, func(t *rapid.T) {
		defer UseRanges(rapid.IntRange(1, 2).Draw(t, "pages of a range"))()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		const dim, heads = 16, 2
		window := rapid.SampledFrom([]int{0, 1, 2, 40, 64}).Draw(t, "window")
		pages := &Pages{Layers: 1, Heads: heads, Dim: dim, KV: KVF32, Windows: []int{window}}
		own := Attention{Heads: heads, KVHeads: heads, Dim: dim, Window: window}
		reading := Attention{Heads: 2 * heads, KVHeads: heads, Dim: dim, Window: window, Reads: true, Scale: 1}
		e := NewExec(pool)
		n, pending := rapid.IntRange(1, 130).Draw(t, "rows"), rapid.IntRange(0, 40).Draw(t, "pending")
		c, other := pages.NewCache(), pages.NewCache()
		defer c.Free()
		defer other.Free()
		var rows Mat
		for _, x := range []*Cache{other, c} {
			rows = randomMat(r, n+pending, own.QKVCols())
			var f Forest
			f.Add(x, chain(n+pending), 0)
			x.Reserve(0, n+pending)
			e.Attend(&own, 0, &f, rows, NewMat(n+pending, heads*dim))
			x.keepRows(n)
			if pending > 0 { // rows left by a pass
				x.Reserve(0, pending)
			}
		}
		q := randomMat(r, 3, 2*heads*dim)
		attend := func(before int) Mat {
			var f Forest
			if before > 0 {
				f.AddReaders(other, before)
			}
			f.AddReaders(c, 3)
			all := randomMat(r, before+3, q.Cols)
			for i := range 3 {
				copy(all.Row(before+i), q.Row(i))
			}
			out := NewMat(before+3, q.Cols)
			e.Attend(&reading, 0, &f, all, out)
			return out.Slice(before, before+3)
		}
		got, together := attend(0), attend(5)
		if c.Len() != n || c.Pending() != pending {
			t.Fatalf("%d rows and %d pending, were %d and %d", c.Len(), c.Pending(), n, pending)
		}
		first := 0
		if window > 0 {
			first = max(0, n-max(window-1, 1))
		}
		for row := range 3 {
			for head := range 2 * heads {
				kv := head / 2
				want, sum := make([]float64, dim), 0.0
				for p := first; p < n; p++ {
					k, v := rows.Row(p)[(heads+kv)*dim:], rows.Row(p)[(2*heads+kv)*dim:]
					dot := 0.0
					for i := range dim {
						dot += float64(q.Row(row)[head*dim+i]) * float64(k[i])
					}
					w := math.Exp(dot)
					sum += w
					for i := range want {
						want[i] += w * float64(v[i])
					}
				}
				for i := range want {
					x := got.Row(row)[head*dim+i]
					if !(math.Abs(float64(x)-want[i]/sum) < 1e-4) {
						t.Fatalf("row %d, head %d: element %d is %g, want %g", row, head, i, x, want[i]/sum)
					}
					if y := together.Row(row)[head*dim+i]; y != x {
						t.Fatalf("row %d, head %d: element %d is %g alone, and %g beside others", row, head, i, x, y)
					}
				}
			}
		}
	})
}
