package nn

import (
	"fmt"
	"io"
	"unsafe"
)

// Whole pages of a cache in files. They are as they lie in memory, which Layout tells apart.

// Layout names what the bytes of pages depend on beside weights and text.
func (p *Pages) Layout() string {
	layout := fmt.Sprintf("%d layers, %d heads of %d, %v, windows %v", p.Layers, p.Heads, p.Dim, p.KV, p.Windows)
	if p.Latent > 0 {
		layout += fmt.Sprintf(", values the first %d of keys", p.Latent)
	}
	return layout
}

// PageBytes is the memory of a page of all layers.
func (p *Pages) PageBytes() int64 { return int64(p.RowBytes()) * PageRows }

// Whole reports whether no row was freed or dropped before those that the cache has. Recurrent layers free rows as a
// text goes on, and their states are not in pages of rows: a cache that has such layers never is.
func (c *Cache) Whole() bool { return c.freed == 0 && c.slid == 0 && c.mem.StateBytes() == 0 }

// WritePages writes n pages, from a first one on. Their rows are committed; the cache is Whole.
func (c *Cache) WritePages(w io.Writer, first, n int) error {
	for i := first; i < first+n; i++ {
		for _, pages := range c.pages {
			if len(pages) == 0 {
				continue
			}
			if _, err := w.Write(pages[i].raw()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadPages adds n pages to a cache of whole pages. An error leaves the cache as it was.
func (c *Cache) ReadPages(r io.Reader, n int) error {
	if c.len%PageRows != 0 || c.pending > 0 {
		return fmt.Errorf("nn: pages are read behind %d rows and %d pending ones: want whole pages", c.len, c.pending)
	}
	for range n {
		for k := range c.pages {
			if c.mem.pools[k].layers == 0 {
				continue
			}
			g := c.get(k)
			c.pages[k] = append(c.pages[k], g)
			if _, err := io.ReadFull(r, g.raw()); err != nil {
				_ = c.Truncate(c.len) // gives the pages back
				return err
			}
		}
	}
	c.len += n * PageRows
	return nil
}

// raw is the page's memory.
func (g *page) raw() []byte {
	if g.bytes != nil {
		return g.bytes
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(g.data))), len(g.data)*4)
}
