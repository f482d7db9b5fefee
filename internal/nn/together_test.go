package nn

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/testing/cases"
)

// Layers with windows of any length, planned together, attend as each does alone, to the bit: for
// texts of any length, by any number of workers. A layer that is planned later may see less of a
// text than one before it, or more.
func TestLayersWithWindowsTogether(t *testing.T) {
	pools := []*par.Pool{par.New(2), par.New(3), par.New(4)}
	defer func() {
		for _, p := range pools {
			p.Close()
		}
	}()
	cases.Check(t, 40, func(t *rapid.T) {
		defer UseRanges(rapid.IntRange(1, 3).Draw(t, "pages of a range"))()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		heads, dim := rapid.IntRange(1, 3).Draw(t, "kv heads"), 16
		windows := make([]int, 2+r.IntN(5))
		for i := range windows {
			windows[i] = max(0, r.IntN(900)-300) // 0, none, for a third of them
		}
		pages := &Pages{Layers: len(windows), Heads: heads, Dim: dim,
			KV: rapid.SampledFrom([]KVType{KVF32, KVBF16, KVQ8}).Draw(t, "kv")}
		var layers []Attention
		for _, w := range windows {
			layers = append(layers, Attention{Heads: 2 * heads, KVHeads: heads, Dim: dim, Rope: randomRope(dim), Window: w})
		}
		chunks := make([]int, 1+r.IntN(4))
		for i := range chunks {
			chunks[i] = 1 + r.IntN([]int{8, 400}[r.IntN(2)])
		}
		together, alone := NewExec(rapid.SampledFrom(pools).Draw(t, "pool")), NewExec(pools[0])
		a, b := pages.NewCache(), pages.NewCache()
		defer a.Free()
		defer b.Free()
		for _, n := range chunks {
			var rows []Mat
			for range layers {
				rows = append(rows, randomMat(r, n, layers[0].QKVCols()))
			}
			attend := func(e *Exec, c *Cache, held bool) (outs []Mat) {
				var f Forest
				f.Add(c, chain(n), 0)
				c.Reserve(0, n)
				if held {
					e.Hold()
				}
				for l := range layers {
					qkv, out := NewMat(n, rows[l].Cols), NewMat(n, 2*heads*dim)
					copy(qkv.Data, rows[l].Data)
					e.Attend(&layers[l], l, &f, qkv, out)
					outs = append(outs, out)
				}
				if held {
					e.Release()
				}
				c.CommitAll()
				return outs
			}
			want, got := attend(alone, a, false), attend(together, b, true)
			for l := range layers {
				if !slices.Equal(got[l].Data, want[l].Data) {
					t.Fatalf("%d rows after %d, layer %d of windows %v: planned together it differs", n, a.Len()-n, l, windows)
				}
			}
		}
	})
}
