package nn

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/simd"
)

// Pages is the memory of all caches of one network: pages of PageRows rows each, holding
// keys and values of every layer and head. Freed pages are used again.
type Pages struct {
	Layers, Heads, Dim int    // key/value heads, and dimensions of a head
	KV                 KVType // what keys and values are stored as; KVAuto is KVF32 here
	Rope               *Rope  // what keys are rotated by; only Cache.Slide needs it

	// Ropes are, where layers differ, those of each; nil stands for no rotation.
	Ropes []*Rope

	mu   sync.Mutex
	free []*page
	used int // pages that caches have
}

// PageRows is the number of rows of a cache page.
const PageRows = simd.PageRows

// page holds, for each layer and head, PageRows keys transposed (Dim × PageRows: scores of
// neighbouring rows are computed side by side, in lanes), then PageRows values (PageRows × Dim). Of bf16 it is laid out as halfpage.go says.
type page struct {
	refs atomic.Int32
	data []float32
	half []byte
	mem  any // keeps them
}

// RowBytes is the memory of a row: its keys and values of every layer and head.
func (p *Pages) RowBytes() int {
	if p.KV == KVBF16 {
		return p.Layers * p.Heads * p.halfBytes() / PageRows
	}
	return p.Layers * p.Heads * 2 * p.Dim * 4
}

// ropeOf is what a layer's keys are rotated by, or nil.
func (p *Pages) ropeOf(layer int) *Rope {
	if p.Ropes != nil {
		return p.Ropes[layer]
	}
	return p.Rope
}

func (p *Pages) get() *page {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used++
	var g *page
	if n := len(p.free); n > 0 {
		g = p.free[n-1]
		p.free = p.free[:n-1]
	} else {
		g = new(page)
		if p.KV == KVBF16 {
			g.half, g.mem = gemm.Memory(p.RowBytes() * PageRows)
		} else {
			g.data, g.mem = gemm.Floats(p.RowBytes() * PageRows / 4)
		}
	}
	g.refs.Store(1)
	return g
}

func (p *Pages) put(g *page) {
	if g.refs.Add(-1) > 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, g)
	p.used--
}

// InUse is the memory of the pages that caches have, in bytes; pages that several caches share count once.
func (p *Pages) InUse() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.used) * PageRows * int64(p.RowBytes())
}

// Cache is the keys and values of one sequence. Rows [0, Len) are committed, in position
// order. A pass adds its rows after them, pending, in the order of the tree's nodes; the next may add
// further nodes of the same tree. Commit keeps a path of those and drops the others. One goroutine uses
// a Cache at a time.
type Cache struct {
	mem     *Pages
	pages   []*page
	len     int
	pending int
	slid    int // rows that Slide dropped
}

// NewCache returns an empty cache.
func (p *Pages) NewCache() *Cache { return &Cache{mem: p} }

// Len is the number of committed rows.
func (c *Cache) Len() int { return c.len }

// Position is the position of the next row: Len and the number of rows that Slide dropped.
func (c *Cache) Position() int { return c.len + c.slid }

// Pending is the number of rows of the last pass, neither committed nor dropped yet.
func (c *Cache) Pending() int { return c.pending }

// Pages is the memory the cache takes its pages from.
func (c *Cache) Pages() *Pages { return c.mem }

// Fork returns a second cache with the same committed rows. Pages are shared until one of the two writes.
func (c *Cache) Fork() *Cache {
	f := &Cache{mem: c.mem, len: c.len, slid: c.slid, pages: make([]*page, pagesFor(c.len))}
	copy(f.pages, c.pages)
	for _, g := range f.pages {
		g.refs.Add(1)
	}
	return f
}

// Truncate drops the committed rows from n on, and all pending ones.
func (c *Cache) Truncate(n int) error {
	if n < 0 || n > c.len {
		return fmt.Errorf("nn: truncate a cache of %d rows to %d: want 0 to %d", c.len, n, c.len)
	}
	c.len, c.pending = n, 0
	for len(c.pages) > pagesFor(n) {
		last := len(c.pages) - 1
		c.mem.put(c.pages[last])
		c.pages = c.pages[:last]
	}
	return nil
}

// Free returns the cache's memory. The cache is empty afterwards, and positions start at 0.
func (c *Cache) Free() {
	_ = c.Truncate(0)
	c.slid = 0
}

// Reserve keeps the first keep of the pending rows, drops the others, and makes room for n more
// after them. Pages shared with a fork are copied, since the pass will write them.
func (c *Cache) Reserve(keep, n int) {
	n += keep
	for i := c.len / PageRows; i < pagesFor(c.len+n); i++ {
		if i == len(c.pages) {
			c.pages = append(c.pages, c.mem.get())
			continue
		}
		c.unshare(i)
	}
	c.pending = n
}

// unshare makes page i the cache's alone.
func (c *Cache) unshare(i int) {
	if old := c.pages[i]; old.refs.Load() > 1 {
		g := c.mem.get()
		copy(g.data, old.data)
		copy(g.half, old.half)
		c.pages[i] = g
		c.mem.put(old)
	}
}

// Commit keeps the pending rows listed in nodes, a path from the root down, and drops the
// rest: the path's keys and values move to follow the committed rows, and no pass is run
// again. nodes ascend, as those of any path do (parents come before children).
func (c *Cache) Commit(nodes []int32) error {
	for t, n := range nodes {
		if n < 0 || int(n) >= c.pending || t > 0 && n <= nodes[t-1] {
			return fmt.Errorf("nn: commit node %d after %v of a pass of %d rows: want an ascending path within the pass", n, nodes[:t], c.pending)
		}
	}
	for t, n := range nodes {
		if int(n) != t { // n > t: the row moved onto is not on the path, or has moved already
			c.move(c.len+t, c.len+int(n))
		}
	}
	c.len += len(nodes)
	c.pending = 0
	return nil
}

// CommitAll keeps every pending row, which must be a chain.
func (c *Cache) CommitAll() {
	c.len += c.pending
	c.pending = 0
}

// move copies row src of every layer and head to row dst.
func (c *Cache) move(dst, src int) {
	d := c.mem.Dim
	if c.mem.KV == KVBF16 {
		c.moveHalf(dst, src)
		return
	}
	to, from := c.pages[dst/PageRows].data, c.pages[src/PageRows].data
	dst, src = dst%PageRows, src%PageRows
	size := d * PageRows
	for o := 0; o < len(to); o += 2 * size {
		tk, fk := to[o:o+size], from[o:o+size]
		for i := 0; i < size; i += PageRows {
			tk[i+dst] = fk[i+src]
		}
		copy(to[o+size+dst*d:o+size+(dst+1)*d], from[o+size+src*d:o+size+(src+1)*d])
	}
}

// keys returns page i's keys of a layer and head: Dim × PageRows.
func (c *Cache) keys(layer, head, i int) []float32 {
	size := c.mem.Dim * PageRows
	o := (layer*c.mem.Heads + head) * 2 * size
	return c.pages[i].data[o : o+size]
}

// values returns page i's values of a layer and head: PageRows × Dim.
func (c *Cache) values(layer, head, i int) []float32 {
	size := c.mem.Dim * PageRows
	o := (layer*c.mem.Heads+head)*2*size + size
	return c.pages[i].data[o : o+size]
}

// storeKeys writes one head's keys of a layer, n numbers Dim wide and stride apart, into rows of the cache, from slot on. They go dimension by
// dimension: neighbouring rows share cache lines, for which workers with rows of their own contend.
func (c *Cache) storeKeys(layer, head, slot, n int, k []float32, stride int) {
	for n > 0 {
		at := slot % PageRows
		m := min(PageRows-at, n)
		switch {
		case c.mem.KV == KVBF16:
			m = min(m, halfRows)
			c.storeHalfKeys(layer, head, slot, m, k, stride)
		case m == 1: // as in plain decoding
			page := c.keys(layer, head, slot/PageRows)
			for d, x := range k[:c.mem.Dim] {
				page[d*PageRows+at] = x
			}
		default:
			page := c.keys(layer, head, slot/PageRows)
			for d := range c.mem.Dim {
				o := d
				for i := d*PageRows + at; i < d*PageRows+at+m; i++ {
					page[i] = k[o]
					o += stride
				}
			}
		}
		slot, n = slot+m, n-m
		if n > 0 {
			k = k[m*stride:]
		}
	}
}

// storeValue writes one head's value of a layer into row slot.
func (c *Cache) storeValue(layer, head, slot int, v []float32) {
	if c.mem.KV == KVBF16 {
		c.storeHalfValue(layer, head, slot, v)
		return
	}
	copy(c.values(layer, head, slot/PageRows)[slot%PageRows*len(v):], v)
}

func pagesFor(rows int) int { return (rows + PageRows - 1) / PageRows }
