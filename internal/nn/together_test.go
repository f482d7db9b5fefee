package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
)

// Layers with windows of any length, planned together, attend to the bit as each does alone, for
// texts of any length and any number of workers. A layer that is planned later may see less of a
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
			windows[i] = max(0, r.IntN(900)-300) // a third of them have 0, which is none
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
		together, alone := NewExec(pools[rapid.IntRange(0, len(pools)-1).Draw(t, "pool")]), NewExec(pools[0])
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

// Sequences that share their beginning in memory read it together, and each attends to the bit as it does alone:
// whatever their order, their trees, the type of keys and values, the number of workers, and infinities among them.
func TestSequencesThatBeginAlike(t *testing.T) {
	pools := []*par.Pool{par.New(1), par.New(2), par.New(3)}
	defer func() {
		for _, p := range pools {
			p.Close()
		}
	}()
	joined := 0
	cases.Check(t, 60, func(t *rapid.T) {
		defer UseRanges(rapid.IntRange(1, 3).Draw(t, "pages of a range"))()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		heads, dim := rapid.IntRange(1, 3).Draw(t, "kv heads"), 16<<r.IntN(3)
		group := rapid.IntRange(1, 4).Draw(t, "group")
		a := Attention{Heads: group * heads, KVHeads: heads, Dim: dim, Rope: randomRope(dim), Window: max(0, r.IntN(400)-300)}
		width := dim
		if rapid.IntRange(0, 3).Draw(t, "latent") == 0 {
			width = dim / 2
			a = Attention{Heads: group, KVHeads: 1, Dim: dim, Rope: randomRope(dim - width), Latent: width}
		}
		if rapid.Bool().Draw(t, "sinks") {
			a.Sinks = randomMat(r, 1, a.Heads).Data[:a.Heads]
		}
		if rapid.Bool().Draw(t, "cap") {
			a.Cap = 5
		}
		random := func(n int) Mat { return randomMat(r, n, a.QKVCols()) }
		if rapid.Bool().Draw(t, "infinities") {
			random = func(n int) Mat {
				m := randomMat(r, n, a.QKVCols())
				m.Row(r.IntN(n))[r.IntN(m.Cols)] = []float32{float32(math.Inf(1)), float32(math.NaN()), 1e38, 0}[r.IntN(4)]
				return m
			}
		}
		pages := &Pages{Layers: 1, Heads: a.KVHeads, Dim: dim, Latent: a.Latent,
			KV: rapid.SampledFrom([]KVType{KVF32, KVBF16, KVQ8}).Draw(t, "kv")}
		e, alone := NewExec(pools[rapid.IntRange(0, len(pools)-1).Draw(t, "pool")]), NewExec(pools[0])
		extend := func(c *Cache, n int) {
			var f Forest
			f.Add(c, chain(n), 0)
			c.Reserve(0, n)
			alone.Attend(&a, 0, &f, random(n), NewMat(n, a.Heads*width))
			c.CommitAll()
		}
		caches := []*Cache{pages.NewCache()}
		defer func() {
			for _, c := range caches {
				c.Free()
			}
		}()
		extend(caches[0], 1+r.IntN(300))
		for range r.IntN(9) { // each continues a part of another, or starts from nothing
			c := caches[r.IntN(len(caches))].Fork()
			caches = append(caches, c)
			if n := r.IntN(c.Len() + 1); r.IntN(3) == 0 && c.Reach(n) == n {
				if err := c.Truncate(n); err != nil {
					t.Fatal(err)
				}
			}
			if n := r.IntN(60); n > 0 {
				extend(c, n)
			}
		}
		var f Forest
		var trees []*tree.Tree
		for _, c := range caches {
			tr := tree.New(0)
			n := []int{1, 1, 2, 9, 40}[r.IntN(5)]
			for i := 1; i < n; i++ {
				tr.Append(r.IntN(i), int32(i), 0)
			}
			trees = append(trees, tr)
			f.Add(c, tr, 0)
			c.Reserve(0, tr.Len())
		}
		for s := range f.segs {
			if run, _ := (&attendJob{a: &a, f: &f}).common(s, f.Len()); run > 1 {
				joined++
			}
		}
		qkv, out := random(f.Len()), NewMat(f.Len(), a.Heads*width)
		rows := NewMat(qkv.Rows, qkv.Cols)
		for i := range rows.Rows {
			copy(rows.Row(i), qkv.Row(i))
		}
		if rapid.Bool().Draw(t, "strips") {
			e.Hold()
			s := e.strip(f.Len())
			s.ops = append(s.ops, e.storing(&a, 0, &f, qkv, a.Heads))
			e.plan.open = nil
			s = e.strip(f.Len())
			s.ops = append(s.ops, e.attending(&a, 0, &f, qkv, out))
			e.Release()
		} else {
			e.Attend(&a, 0, &f, qkv, out)
		}
		for i, c := range caches {
			g := f.segs[i]
			var one Forest
			one.Add(c, trees[i], 0)
			c.Reserve(0, g.Rows)
			x, y := NewMat(g.Rows, qkv.Cols), NewMat(g.Rows, out.Cols)
			copy(x.Data, rows.Slice(g.Row, g.Row+g.Rows).Data)
			alone.Attend(&a, 0, &one, x, y)
			for k := range g.Rows {
				if !slices.EqualFunc(y.Row(k), out.Row(g.Row+k), sameNumber) {
					t.Fatalf("row %d of sequence %d of %d, %d rows over %d: it differs beside the others", k, i, len(caches),
						g.Rows, g.Base)
				}
			}
		}
	})
	if joined < 20 && !testing.Short() {
		t.Errorf("sequences were joined %d times: the cases are too few", joined)
	}
}

// sameNumber reports whether numbers are equal; NaNs equal each other.
func sameNumber(a, b float32) bool { return a == b || a != a && b != b }
