package nn

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
)

// Attention to latent vectors equals, to the bit, attention whose values repeat the first
// dimensions of keys, whatever the pages hold.
func TestLatentAttention(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		heads, rank := rapid.IntRange(1, 5).Draw(t, "heads"), rapid.IntRange(2, 90).Draw(t, "rank")
		rotated := 2 * rapid.IntRange(1, 20).Draw(t, "rotated")
		kv := rapid.SampledFrom([]KVType{KVF32, KVBF16, KVQ8}).Draw(t, "type")
		rows, dim := rapid.IntRange(1, 150).Draw(t, "rows"), rank+rotated
		defer UseRanges(rapid.IntRange(1, 4).Draw(t, "pages of a range"))()
		latent := &Attention{Heads: heads, KVHeads: 1, Dim: dim, Latent: rank, Rope: randomRope(rotated)}
		whole := &Attention{Heads: heads, KVHeads: 1, Dim: dim}
		text := &tree.Tree{}
		text.Reset(0)
		for i := 1; i < rows; i++ {
			parent := i - 1
			if r.IntN(6) == 0 {
				parent = r.IntN(i)
			}
			text.Append(parent, int32(i), 0)
		}
		qkv := randomMat(r, rows, latent.QKVCols())
		caches := [2]*Cache{(&Pages{Layers: 1, Heads: 1, Dim: dim, KV: kv, Latent: rank}).NewCache(),
			(&Pages{Layers: 1, Heads: 1, Dim: dim, KV: kv}).NewCache()}
		var out [2]Mat
		pool := par.New(rapid.IntRange(1, 3).Draw(t, "threads"))
		defer pool.Close()
		e := NewExec(pool)
		both := NewMat(rows, whole.QKVCols())
		for i, a := range []*Attention{latent, whole} {
			var f Forest
			caches[i].Reserve(0, rows)
			f.Add(caches[i], text, 0)
			width := rank
			if i == 1 {
				for row := range rows { // queries and keys as the first one computed them
					copy(both.Row(row), qkv.Row(row))
					copy(both.Row(row)[(heads+1)*dim:], qkv.Row(row)[heads*dim:])
				}
				qkv, width = both, dim
			}
			out[i] = NewMat(rows, heads*width)
			e.Attend(a, 0, &f, qkv, out[i])
		}
		for row := range rows {
			for h := range heads {
				for d := range rank {
					if x, y := out[0].Row(row)[h*rank+d], out[1].Row(row)[h*dim+d]; x != y {
						t.Fatalf("row %d, head %d, dimension %d is %g, of values that are stored %g", row, h, d, x, y)
					}
				}
			}
		}
		path := text.Path(rows-1, nil)
		for i, c := range caches {
			if err := c.Commit(path); err != nil {
				t.Fatal(i, err)
			}
		}
		key, other := make([]float32, dim), make([]float32, dim)
		for row := range path {
			caches[0].loadKey(key, 0, 0, row)
			caches[1].loadKey(other, 0, 0, row)
			for d := range key {
				if key[d] != other[d] {
					t.Fatalf("committed row %d: dimension %d is %g, want %g", row, d, key[d], other[d])
				}
			}
		}
	})
}
