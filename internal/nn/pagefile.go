package nn

import (
	"fmt"
	"io"
	"unsafe"
)

// These functions write whole pages of a cache to files, in their layout in memory, which Layout identifies.

// Layout names everything other than weights and text that the bytes of pages depend on.
func (p *Pages) Layout() string {
	layout := fmt.Sprintf("%d layers, %d heads of %d, %v, windows %v", p.Layers, p.Heads, p.Dim, p.KV, p.Windows)
	if p.Latent > 0 {
		layout += fmt.Sprintf(", values the first %d of keys", p.Latent)
	}
	p.prepare()
	if p.StateBytes() > 0 {
		layout += fmt.Sprintf(", %d recurrent layers with %d", p.pools[states].layers, p.kept.State)
	}
	return layout
}

// PageBytes is the size in a file of one page of all attention layers.
func (p *Pages) PageBytes() int64 {
	p.prepare()
	return int64(p.attentionBytes()) * PageRows
}

// Whole reports whether c still has every row of attention from the first on: none was freed or dropped.
func (c *Cache) Whole() bool { return c.freed == 0 && c.slid == 0 }

// WritePages writes n pages of attention layers, from first on. Their rows must be committed and the cache Whole.
func (c *Cache) WritePages(w io.Writer, first, n int) error {
	for i := first; i < first+n; i++ {
		for _, pages := range c.pages[:recurrentRows] {
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

// ReadPages adds n pages to a cache of whole pages. On an error, the cache is unchanged. With
// recurrent layers, the cache can be used only after ReadState.
func (c *Cache) ReadPages(r io.Reader, n int) error {
	if c.len%PageRows != 0 || c.pending > 0 {
		return fmt.Errorf("nn: pages are read behind %d rows and %d pending ones: want whole pages", c.len, c.pending)
	}
	for range n {
		for k := range c.pages {
			if c.mem.pools[k].layers == 0 {
				continue
			}
			if k == recurrentRows { // the state replaces them
				c.pages[k] = append(c.pages[k], nil)
				continue
			}
			g := c.get(k)
			c.pages[k] = append(c.pages[k], g)
			if _, err := io.ReadFull(r, g.raw()); err != nil {
				_ = c.Truncate(c.len) // returns the pages
				return err
			}
		}
	}
	c.len += n * PageRows
	return nil
}

// KeptStates returns the pages before which the cache has a state that other texts may continue from.
func (c *Cache) KeptStates() (pages []int) {
	s := &c.states
	marked := s.mark < len(s.at) && s.at[s.mark] != nil
	for i, g := range s.at {
		if g != nil && (c.keeps(i) || !marked && i == c.firstPage()) {
			pages = append(pages, i)
		}
	}
	return pages
}

// WriteState writes the state before one of the pages of KeptStates: StateBytes bytes.
func (c *Cache) WriteState(w io.Writer, page int) error {
	_, err := w.Write(c.states.at[page].raw())
	return err
}

// ReadState reads the state after the pages that ReadPages has read. On an error, the cache is unchanged.
func (c *Cache) ReadState(r io.Reader) error {
	g := c.get(states)
	if _, err := io.ReadFull(r, g.raw()); err != nil {
		c.mem.put(g)
		return err
	}
	c.states.at = make([]*page, c.len/PageRows+1)
	c.states.at[c.len/PageRows] = g
	return nil
}

// raw is the page's memory.
func (g *page) raw() []byte {
	if g.bytes != nil {
		return g.bytes
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(g.data))), len(g.data)*4)
}
