package nn

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/tree"
)

// BenchmarkAttend measures only attention, in the shape of Qwen3-0.6B: draft trees of 1 and 16 rows over
// a long text, and a chunk of a prompt. The throughput is that of reading the text's keys and values.
func BenchmarkAttend(b *testing.B) {
	a := &Attention{Heads: 16, KVHeads: 8, Dim: 128}
	for _, kv := range []KVType{KVF32, KVBF16, KVQ8} {
		for _, committed := range []int{128, 1024, 8192, 32768} {
			b.Run(fmt.Sprintf("%v/%d", kv, committed), func(b *testing.B) {
				const layers = 4
				mem := &Pages{Layers: layers, Heads: a.KVHeads, Dim: a.Dim, KV: kv}
				c := mem.NewCache()
				defer c.Free()
				fillCache(c, committed)
				for _, n := range []int{1, 16, 512} {
					b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkAttend(b, a, c, n) })
				}
			})
		}
	}
}

// benchmarkAttend measures attention of n rows to a cache: a tree, or a long chain.
func benchmarkAttend(b *testing.B, a *Attention, c *Cache, n int) {
	pool := par.New(0)
	defer pool.Close()
	e := NewExec(pool)
	t := tree.New(0)
	for i := 1; i < n; i++ {
		parent := i - 1
		if n < 512 {
			parent = (i - 1) / 3
		}
		t.Append(parent, 0, 0)
	}
	var f Forest
	f.Add(c, t, 0)
	c.Reserve(0, n)
	qkv, out := NewMat(n, a.QKVCols()), NewMat(n, a.Heads*a.Dim)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range qkv.Data {
		qkv.Data[i] = float32(r.NormFloat64())
	}
	b.SetBytes(int64(c.Len() * c.mem.RowBytes()))
	for b.Loop() {
		for layer := range c.mem.Layers {
			e.Attend(a, layer, &f, qkv, out)
		}
	}
}

// fillCache commits n rows of random keys and values.
func fillCache(c *Cache, n int) {
	r := rand.New(rand.NewPCG(3, 4))
	d := c.mem.Dim
	rows := make([]float32, PageRows*d)
	for i := range rows {
		rows[i] = float32(r.NormFloat64())
	}
	c.Reserve(0, n)
	for slot := 0; slot < n; slot += PageRows {
		for layer := range c.mem.Layers {
			for head := range c.mem.Heads {
				c.storeKeys(layer, head, slot, PageRows, rows, d)
				for i := range PageRows {
					c.storeValue(layer, head, slot+i, rows[i*d:][:d])
				}
			}
		}
	}
	c.CommitAll()
}

// BenchmarkCommit measures committing a path of 6 nodes in a tree of 16, in the shape of Qwen3-0.6B.
func BenchmarkCommit(b *testing.B) {
	for _, kv := range []KVType{KVF32, KVBF16, KVQ8} {
		b.Run(kv.String(), func(b *testing.B) {
			mem := &Pages{Layers: 28, Heads: 8, Dim: 128, KV: kv}
			c := mem.NewCache()
			defer c.Free()
			fillCache(c, 512)
			for b.Loop() {
				c.Reserve(0, 16)
				if err := c.Commit([]int32{0, 2, 5, 9, 12, 15}); err != nil {
					b.Fatal(err)
				}
				if err := c.Truncate(512); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
