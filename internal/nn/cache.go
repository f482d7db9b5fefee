package nn

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// Pages is the memory of all caches of one network: pages of PageRows rows each, which hold the
// keys and values of every layer and head. Freed pages are reused.
type Pages struct {
	Layers, Heads, Dim int    // key/value heads, and dimensions of a head
	KV                 KVType // the type in which keys and values are stored; KVAuto is KVF32 here
	Rope               *Rope  // the rotation of keys; only Cache.Slide needs it

	// Ropes is the rotation of each layer, where layers differ; a nil element means no rotation.
	Ropes []*Rope

	// Windows is the number of positions that each layer's rows see, including their own, 0 for
	// all; nil: all layers see all positions. Caches free pages that no row will see again.
	Windows []int

	// LocalHeads and LocalDim are Heads and Dim of layers with windows, where they differ; else 0.
	LocalHeads, LocalDim int

	// LayerHeads is Heads of each layer, where these differ from layer to layer; nil: they do not.
	LayerHeads []int

	// Latent, if it is not 0, is the dimensions of a value, which are the first ones of the key:
	// nothing else of the value is stored (multi-head latent attention). It excludes Windows.
	Latent int

	// Sources is, where layers read the keys and values of other layers, the layer that each one reads;
	// nil: its own. It requires Windows; a layer and its source must both have windows or both have none.
	Sources []int

	// Recurrent is what each layer keeps, where some layers are recurrent; a nil element means attention.
	Recurrent []*RecurrentShape

	// Bare marks the layers that keep nothing; nil: none.
	Bare []bool

	once    sync.Once // for prepare
	mu      sync.Mutex
	pools   [poolCount]pool
	place   []place        // of each layer, where layers belong to several pools
	window  int            // the longest of Windows
	kept    RecurrentShape // of the recurrent layers
	spacing int            // one state is kept for every so many pages
	zeros   []float32      // a state before the first row
}

// PageRows is the number of rows of a cache page.
const PageRows = simd.PageRows

// pool is the pages of the layers that see all positions, of those with a window, or of recurrent ones.
type pool struct {
	layers int
	heads  int // of all layers
	bytes  int // of a page
	free   []*page
	used   int // pages in use by caches
}

const (
	wholeText     = iota // the pool of layers that see all positions
	windowed             // of those with a window
	recurrentRows        // of the rows of recurrent layers
	rowPools             // the pools that have a page for every PageRows rows
	states        = rowPools
	poolCount     = states + 1 // states of recurrent layers, one to a page
)

// place is a layer's pool and where its part of a page begins: as heads, or recurrent layers, before it.
type place struct{ pool, at int }

// page holds, for each layer of a pool and each head, PageRows keys transposed (Dim × PageRows:
// scores of neighbouring rows are computed side by side, in lanes), then PageRows values (PageRows
// × Dim). halfpage.go describes the layout for bf16, blockpage.go that for Q8_0.
type page struct {
	pool  int
	apart bool // it does not count as used
	refs  atomic.Int32
	data  []float32
	bytes []byte
	mem   any // keeps the data alive
}

// prepare assigns the layers to the pools, once.
func (p *Pages) prepare() { p.once.Do(p.shareOut) }

func (p *Pages) shareOut() {
	if p.Windows == nil && p.Recurrent == nil && p.Bare == nil {
		p.pools[wholeText].layers, p.pools[wholeText].heads = p.Layers, p.Layers*p.Heads
	} else {
		for layer := range p.Layers {
			if p.Windows != nil {
				p.window = max(p.window, p.Windows[layer])
			}
			if p.Sources != nil && p.Sources[layer] != layer {
				p.place = append(p.place, p.place[p.Sources[layer]])
				continue
			}
			if p.bare(layer) {
				p.place = append(p.place, place{})
				continue
			}
			k := p.poolOf(layer)
			q := &p.pools[k]
			at := q.heads
			if k == recurrentRows {
				at = q.layers
			}
			p.place = append(p.place, place{k, at})
			q.layers++
			q.heads += p.shapeOf(layer).heads
		}
	}
	for k := range recurrentRows {
		s := p.shape(k)
		s.heads = p.pools[k].heads
		p.pools[k].bytes = s.layerBytes() * PageRows
	}
	p.prepareStates()
}

// RowBytes is the memory of a row: its keys and values in every layer and head, and the data of recurrent layers.
func (p *Pages) RowBytes() int {
	p.prepare()
	return p.attentionBytes() + p.pools[recurrentRows].bytes/PageRows
}

// attentionBytes is the memory of a row's keys and values in every layer and head.
func (p *Pages) attentionBytes() (size int) {
	for k := range recurrentRows {
		size += p.pools[k].bytes / PageRows
	}
	return size
}

// ReadBytes is the size of the keys and values that the attention of the next row reads after a
// text of the given rows. In a layer with a window, it counts the pages that the window touches.
func (p *Pages) ReadBytes(rows int) int {
	p.prepare()
	size := p.StateBytes()
	for i := range p.Layers {
		if p.recurrent(i) != nil || p.bare(i) {
			continue
		}
		n := rows
		if p.poolOf(i) == windowed {
			n -= max(0, rows+1-p.Windows[i]) / PageRows * PageRows
		}
		size += n * p.shapeOf(i).layerBytes()
	}
	return size
}

// TextBytes is the most memory that a text of the given rows takes, apart from one page, where
// passes compute pass rows at once. In layers with windows it does not grow beyond the window,
// since caches free pages.
func (p *Pages) TextBytes(rows, pass int) int64 {
	p.prepare()
	n := [recurrentRows]int{wholeText: rows, windowed: min(rows, p.window+keptRows+pass+PageRows)}
	size := p.statesBytes(rows, pass)
	for k, rows := range n {
		size += int64(rows) * int64(p.pools[k].bytes/PageRows)
	}
	return size
}

// ropeOf is the rotation of a layer's keys, or nil.
func (p *Pages) ropeOf(layer int) *Rope {
	if p.Ropes != nil {
		return p.Ropes[layer]
	}
	return p.Rope
}

func (c *Cache) get(k int) *page {
	p := c.mem
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.pools[k]
	if !c.apart {
		q.used++
	}
	var g *page
	if n := len(q.free); n > 0 {
		g = q.free[n-1]
		q.free = q.free[:n-1]
	} else {
		g = p.newPage(k)
	}
	g.refs.Store(1)
	g.apart = c.apart
	return g
}

func (p *Pages) newPage(k int) *page {
	g := &page{pool: k}
	if k < recurrentRows && p.KV.panels() {
		g.bytes, g.mem = gemm.Memory(p.pools[k].bytes)
	} else {
		g.data, g.mem = gemm.Floats(p.pools[k].bytes / 4)
	}
	return g
}

// Ready adds a page to the free ones unless they already have room for the given rows, and reports whether it did. The
// system hands out memory on the first write, which takes a while: 4 ms for 2 MB in a virtual machine (Firecracker).
func (p *Pages) Ready(rows int) bool {
	p.prepare()
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range rowPools {
		if q := &p.pools[k]; q.bytes > 0 && len(q.free)*PageRows < rows {
			g := p.newPage(k)
			clear(g.data)
			clear(g.bytes)
			q.free = append(q.free, g)
			return true
		}
	}
	return false
}

// put gives a page back; nil is ignored.
func (p *Pages) put(g *page) {
	if g == nil || g.refs.Add(-1) > 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.pools[g.pool]
	q.free = append(q.free, g)
	if !g.apart {
		q.used--
	}
}

// InUse is the memory of the pages that caches use, in bytes, except those of SetApart; pages that
// several caches share count once.
func (p *Pages) InUse() int64 {
	p.prepare()
	p.mu.Lock()
	defer p.mu.Unlock()
	size := int64(0)
	for _, q := range p.pools {
		size += int64(q.used) * int64(q.bytes)
	}
	return size
}

// Cache is the keys and values of one sequence. Rows [0, Len) are committed, in the order of
// positions. A pass adds its rows after them as pending, in the order of the tree's nodes; the next
// pass may add further nodes of the same tree. Commit keeps one path of these and drops the others.
// Only one goroutine may use a Cache at a time.
type Cache struct {
	mem     *Pages
	pages   [rowPools][]*page // of each pool that has layers; nil: freed, since no row will see it again
	states  stateList         // of recurrent layers
	len     int
	pending int
	slid    int  // rows that Slide dropped
	freed   int  // leading pages of the layers with windows that were freed
	whole   bool // no page is freed
	apart   bool // its pages do not count as used
}

// NewCache returns an empty cache.
func (p *Pages) NewCache() *Cache {
	p.prepare()
	return &Cache{mem: p}
}

// KeepAll makes c keep even the rows that no row will see again, because it will slide.
func (c *Cache) KeepAll() { c.whole = true }

// SetApart excludes the pages of c from Pages.InUse. c must be empty.
func (c *Cache) SetApart() { c.apart = true }

// Len is the number of committed rows.
func (c *Cache) Len() int { return c.len }

// Position is the position of the next row: Len plus the number of rows that Slide dropped.
func (c *Cache) Position() int { return c.len + c.slid }

// Pending is the number of rows of the last passes that are neither committed nor dropped yet.
func (c *Cache) Pending() int { return c.pending }

// Pages is the memory from which the cache takes its pages.
func (c *Cache) Pages() *Pages { return c.mem }

// Fork returns a second cache with the same committed rows. Pages are shared until either cache writes to them.
func (c *Cache) Fork() *Cache {
	f := *c
	f.pending = 0
	for k, pages := range c.pages {
		f.pages[k] = sharePages(pages[:min(len(pages), pagesFor(c.len))])
	}
	f.states = c.states.fork()
	return &f
}

// sharePages returns the same pages with one more reader.
func sharePages(pages []*page) []*page {
	pages = slices.Clone(pages)
	for _, g := range pages {
		if g != nil {
			g.refs.Add(1)
		}
	}
	return pages
}

// keptRows is the least number of rows kept before those that the next row sees. This many can be
// truncated, as when a drafter needs rows to be computed again, or when another sequence continues
// from a prompt whose last chunk differs.
var keptRows = 18 * PageRows

// freeUnseen frees pages of layers with windows that no row will see, even after Truncate drops the last keptRows rows.
func (c *Cache) freeUnseen() {
	if c.mem.window == 0 || c.whole {
		return
	}
	for (c.freed+1)*PageRows <= c.len+1-c.mem.window-keptRows {
		c.mem.put(c.pages[windowed][c.freed])
		c.pages[windowed][c.freed] = nil
		c.freed++
	}
}

// Reach is the largest number of rows, at most n, that Truncate can keep. It is less than n where
// the next row would see freed rows or need a freed state. The rows from there on must be computed
// again.
func (c *Cache) Reach(n int) int {
	n = c.reachState(min(n, c.len))
	if c.freed > 0 && n < c.freed*PageRows+c.mem.window-1 {
		return 0
	}
	return n
}

// Truncate drops the committed rows from n on, and all pending ones. n must be a result of Reach.
func (c *Cache) Truncate(n int) error {
	if n < 0 || n > c.len {
		return fmt.Errorf("nn: truncate a cache of %d rows to %d: want 0 to %d", c.len, n, c.len)
	}
	if least := c.Reach(n); least < n {
		return fmt.Errorf("nn: truncate a cache of %d rows to %d: what the next row sees was freed: want %d, as Reach says", c.len, n, least)
	}
	c.len, c.pending = n, 0
	c.truncateStates()
	for k := range c.pages {
		for len(c.pages[k]) > pagesFor(n) {
			last := len(c.pages[k]) - 1
			c.mem.put(c.pages[k][last])
			c.pages[k] = c.pages[k][:last]
		}
	}
	if n == 0 {
		c.freed = 0
	}
	return nil
}

// Free returns the cache's memory. The cache is empty afterwards, and positions start at 0.
func (c *Cache) Free() {
	_ = c.Truncate(0)
	c.slid = 0
}

// Reserve keeps the first keep of the pending rows, drops the others, and makes room for n more
// after them. Pages shared with a fork are copied, since the pass will write to them.
func (c *Cache) Reserve(keep, n int) {
	n += keep
	for k := range c.pages {
		if c.mem.pools[k].layers == 0 {
			continue
		}
		for i := c.len / PageRows; i < pagesFor(c.len+n); i++ {
			if i == len(c.pages[k]) {
				c.pages[k] = append(c.pages[k], c.get(k))
				continue
			}
			c.unshare(k, i)
		}
	}
	c.pending = n
	c.reserveStates(keep)
}

// unshare gives the cache its own copy of page i of a pool.
func (c *Cache) unshare(k, i int) {
	if old := c.pages[k][i]; old.refs.Load() > 1 {
		g := c.get(k)
		copy(g.data, old.data)
		copy(g.bytes, old.bytes)
		c.pages[k][i] = g
		c.mem.put(old)
	}
}

// Commit keeps the pending rows listed in nodes, a path from the root down, and drops the rest: the
// path's keys and values move to follow the committed rows, and no pass is run again. nodes must
// ascend, as on any path (parents come before children).
func (c *Cache) Commit(nodes []int32) error {
	for t, n := range nodes {
		if n < 0 || int(n) >= c.pending || t > 0 && n <= nodes[t-1] {
			return fmt.Errorf("nn: commit node %d after %v of a pass of %d rows: want an ascending path within the pass", n, nodes[:t], c.pending)
		}
	}
	for t, n := range nodes {
		if int(n) != t { // n > t: the overwritten row is not on the path, or has already moved
			c.move(c.len+t, c.len+int(n))
		}
	}
	c.keepRows(len(nodes))
	return nil
}

// CommitAll keeps every pending row, which must be a chain.
func (c *Cache) CommitAll() { c.keepRows(c.pending) }

// keepRows makes the first n pending rows committed ones.
func (c *Cache) keepRows(n int) {
	c.adoptStates()
	c.len += n
	c.pending = 0
	c.freeUnseen()
	c.freeStates()
}

// move copies row src of every layer and head to row dst.
func (c *Cache) move(dst, src int) {
	for _, pages := range c.pages {
		if len(pages) > 0 {
			c.mem.move(pages[dst/PageRows], dst%PageRows, pages[src/PageRows], src%PageRows)
		}
	}
}

// move copies row src of a page to row dst of a page of the same pool.
func (p *Pages) move(to *page, dst int, from *page, src int) {
	s := p.shape(to.pool)
	switch {
	case to.pool == recurrentRows:
		p.moveRecurrent(to.data, dst, from.data, src)
		return
	case p.KV == KVBF16:
		s.moveHalf(to.bytes, dst, from.bytes, src)
		return
	case p.KV == KVQ8:
		s.moveBlocks(to.bytes, dst, from.bytes, src)
		return
	}
	d, size := s.dim, s.dim*PageRows
	for o := 0; o < len(to.data); o += s.headFloats() * PageRows {
		tk, fk := to.data[o:o+size], from.data[o:o+size]
		for i := 0; i < size; i += PageRows {
			tk[i+dst] = fk[i+src]
		}
		if s.latent > 0 {
			continue
		}
		copy(to.data[o+size+dst*d:o+size+(dst+1)*d], from.data[o+size+src*d:o+size+(src+1)*d])
	}
}

// samePages returns how many leading pages both caches share, in layers that see all positions.
func (c *Cache) samePages(o *Cache) (n int) {
	a, b := c.pages[wholeText], o.pages[wholeText]
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// at returns page i of a layer, and the number of a head of the layer in it.
func (c *Cache) at(layer, head, i int) (g *page, number int) {
	if c.mem.place == nil {
		return c.pages[wholeText][i], layer*c.mem.Heads + head
	}
	p := c.mem.place[layer]
	return c.pages[p.pool][i], p.at + head
}

// Keys returns page i's keys of a layer and head: Dim × PageRows.
func (c *Cache) Keys(layer, head, i int) []float32 {
	s := c.mem.shapeOf(layer)
	g, head := c.at(layer, head, i)
	size := s.dim * PageRows
	o := head * s.headFloats() * PageRows
	return g.data[o : o+size]
}

// Values returns page i's values of a layer and head, where values are stored: PageRows × Dim.
func (c *Cache) Values(layer, head, i int) []float32 {
	s := c.mem.shapeOf(layer)
	g, head := c.at(layer, head, i)
	size := s.dim * PageRows
	o := head*2*size + size
	return g.data[o : o+size]
}

// storeKeys writes one head's keys of a layer, n keys Dim wide and stride apart, into rows of the
// cache from slot on. It writes dimension by dimension: neighbouring rows share cache lines, and
// workers that each store their own rows contend for them.
func (c *Cache) storeKeys(layer, head, slot, n int, k []float32, stride int) {
	dim := c.mem.shapeOf(layer).dim
	for n > 0 {
		at := slot % PageRows
		m := min(PageRows-at, n)
		switch {
		case c.mem.KV == KVQ8:
			for i := range m {
				c.storeBlockKey(layer, head, slot+i, k[i*stride:][:dim])
			}
		case c.mem.KV == KVBF16:
			m = min(m, halfRows)
			c.storeHalfKeys(layer, head, slot, m, k, stride)
		case m == 1: // as in plain decoding
			page := c.Keys(layer, head, slot/PageRows)
			for d, x := range k[:dim] {
				page[d*PageRows+at] = x
			}
		default:
			page := c.Keys(layer, head, slot/PageRows)
			for d := range dim {
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
	switch c.mem.KV {
	case KVBF16:
		c.storeHalfValue(layer, head, slot, v)
		return
	case KVQ8:
		c.storeBlockValue(layer, head, slot, v)
		return
	}
	copy(c.Values(layer, head, slot/PageRows)[slot%PageRows*len(v):], v)
}

func pagesFor(rows int) int { return (rows + PageRows - 1) / PageRows }
