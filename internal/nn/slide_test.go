package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
)

// A cache that slid holds the remaining rows: those after the dropped ones unchanged, and the first
// ones with keys for the positions right before them. A fork still holds its own rows.
func TestSlide(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		mem := &Pages{
			Layers: 2, Heads: 2, Dim: rapid.SampledFrom([]int{4, 8, 40}).Draw(t, "dim"),
			KV: rapid.SampledFrom([]KVType{KVAuto, KVBF16, KVQ8}).Draw(t, "type"),
		}
		tolerance := 1e-5
		if mem.KV != KVAuto {
			tolerance = 0.05
		}
		if rapid.IntRange(0, 3).Draw(t, "latent") == 0 {
			mem.Latent = mem.Dim / 2
		}
		mem.Rope = NewRope(Frequencies(100, mem.Dim-mem.Latent, nil), rapid.Bool().Draw(t, "neighbours"))
		if rapid.Bool().Draw(t, "by layer") {
			mem.Ropes = []*Rope{mem.Rope, NewScaledRope(Frequencies(100, mem.Dim-mem.Latent, nil), mem.Rope.pairs, 1.5)}
			mem.Rope = nil
		}
		ropes := mem.Ropes
		if ropes == nil {
			ropes = []*Rope{mem.Rope, mem.Rope}
		}
		ropes[0].prepare(1000)
		ropes[1].prepare(1000)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "numbers"), 0))
		rows := rapid.IntRange(0, 6*PageRows).Draw(t, "rows")
		keep := PageRows * rapid.IntRange(0, rows/PageRows).Draw(t, "keep")
		n := PageRows * rapid.IntRange(0, (rows-keep)/PageRows).Draw(t, "dropped")
		if rapid.IntRange(0, 4).Draw(t, "all") == 0 {
			keep, n = 0, rows
		}

		positions := n / rapid.IntRange(1, 3).Draw(t, "rows of a token")
		c := mem.NewCache()
		c.Reserve(0, rows+3)
		plain := make([][]float32, rows) // keys before rotation, for a layer and head chosen by the row's number
		rotated := func(row, position int) []float32 {
			key := append([]float32(nil), plain[row]...)
			view := ropes[row%2].view() // the row's layer
			cos, sin := view.at(position)
			view.rotate(key[mem.Latent:], cos, sin)
			return key
		}
		place := func(row int) (layer, head int) { return row % 2, row / 2 % 2 }
		for row := range plain {
			for range mem.Dim {
				plain[row] = append(plain[row], float32(rng.NormFloat64()))
			}
			layer, head := place(row)
			c.storeKeys(layer, head, row, 1, rotated(row, row), mem.Dim)
			if mem.Latent == 0 {
				c.storeValue(layer, head, row, plain[row])
			}
		}
		c.pending = rows
		c.CommitAll()
		fork := c.Fork()
		if err := c.Slide(keep, n, positions); err != nil {
			t.Fatal(err)
		}
		if c.Len() != rows-n || c.Position() != rows || c.Pending() != 0 {
			t.Fatalf("%d rows, %d dropped: %d left, the next at %d, %d pending", rows, n, c.Len(), c.Position(), c.Pending())
		}
		verify := func(c *Cache, row, was, position int) {
			layer, head := place(was)
			want := rotated(was, position)
			for d := range mem.Dim {
				k, v := keyAt(c, layer, head, row, d), plain[was][d]
				if mem.Latent == 0 {
					v = valueAt(c, layer, head, row, d)
				}
				if math.Abs(float64(k-want[d])) > tolerance || math.Abs(float64(v-plain[was][d])) > tolerance {
					t.Fatalf("row %d, which was %d: key %g and value %g, want %g and %g", row, was, k, v, want[d], plain[was][d])
				}
			}
		}
		for row := range c.Len() {
			if row < keep {
				verify(c, row, row, row+positions)
			} else {
				verify(c, row, row+n, row+n)
			}
		}
		c.Free()
		if c.Position() != 0 {
			t.Fatal("positions do not start again")
		}
		for row := range fork.Len() {
			verify(fork, row, row, row)
		}
		fork.Free()
		for _, g := range append(mem.pools[0].free, mem.pools[1].free...) {
			if g.refs.Load() != 0 {
				t.Fatalf("a free page has %d references", g.refs.Load())
			}
		}
	})
	c := (&Pages{Layers: 1, Heads: 1, Dim: 4}).NewCache()
	c.Reserve(0, 100)
	c.CommitAll()
	for _, bad := range [][2]int{{-32, 32}, {0, -32}, {0, 31}, {31, 32}, {0, 128}, {96, 32}, {32, 32}} { // without a Rope
		if err := c.Slide(bad[0], bad[1], bad[1]); err == nil || c.Len() != 100 {
			t.Errorf("keep %d and drop %d: %v, %d rows", bad[0], bad[1], err, c.Len())
		}
	}
}
