package nn

import (
	"encoding/binary"
	"fmt"

	"github.com/grovellm/grove/internal/kernels/num"
)

// Slide drops n committed rows after the first keep rows, and all pending rows. The rows after the
// dropped ones keep their positions, and Position continues. The first keep rows move up to them:
// their keys are rotated forward by the given positions, n if each row has its own position.
// Attention with rotary positions depends only on distances, so a cache that slides stays within
// the distances that a network was trained for.
//
// keep and n must be multiples of PageRows, or keep must be 0 and n must be Len.
func (c *Cache) Slide(keep, n, positions int) error {
	whole := keep%PageRows == 0 && n%PageRows == 0 || keep == 0 && n == c.len
	switch {
	case keep < 0 || n < 0 || keep+n > c.len || !whole:
		return fmt.Errorf("nn: drop %d rows behind the first %d of a cache of %d: want whole pages of %d rows, or all rows",
			n, keep, c.len, PageRows)
	case keep > 0 && c.freed > 0:
		return fmt.Errorf("nn: drop rows behind the first %d: %d pages were freed already: want KeepAll", keep, c.freed)
	case keep > 0 && c.mem.Rope == nil && c.mem.Ropes == nil:
		return fmt.Errorf("nn: drop rows behind the first %d: want Pages.Rope, to rotate their keys", keep)
	}
	first, last := keep/PageRows, (keep+n+PageRows-1)/PageRows
	for k, pages := range c.pages {
		if len(pages) > 0 {
			for _, g := range pages[first:last] {
				c.mem.put(g)
			}
			c.pages[k] = append(pages[:first], pages[last:]...)
		}
	}
	c.slideStates(first, last)
	c.len -= n
	c.slid += n
	c.freed = max(0, c.freed-last)
	if keep > 0 {
		c.advance(first, positions)
	}
	return c.Truncate(c.len)
}

// advance rotates the keys of the first pages forward by n positions.
func (c *Cache) advance(pages, n int) {
	for k := range recurrentRows {
		for i := range min(pages, len(c.pages[k])) {
			c.unshare(k, i)
		}
	}
	for layer := range c.mem.Layers {
		rope := c.mem.ropeOf(layer)
		shares := c.mem.Sources != nil && c.mem.Sources[layer] != layer
		if rope == nil || shares || c.mem.recurrent(layer) != nil || c.mem.bare(layer) {
			continue
		}
		cos, sin := rope.turn(n)
		view := rope.view()
		s := c.mem.shapeOf(layer)
		key := make([]float32, s.dim)
		for row := range pages * PageRows {
			for head := range s.heads {
				c.loadKey(key, layer, head, row)
				view.rotate(key[c.mem.Latent:], cos, sin)
				c.storeKeys(layer, head, row, 1, key, len(key))
			}
		}
	}
}

// loadKey reads one head's key of a layer from a row.
func (c *Cache) loadKey(key []float32, layer, head, row int) {
	switch c.mem.KV {
	case KVQ8:
		c.loadBlockKey(key, layer, head, row)
		return
	case KVBF16:
		page, _ := c.panels(layer, head, row/PageRows)
		for d := range key {
			key[d] = num.BF16(binary.LittleEndian.Uint16(page[d/2*halfStep+(row%PageRows^halfFlip)*4+d%2*2:]))
		}
		return
	}
	page := c.Keys(layer, head, row/PageRows)
	for d := range key {
		key[d] = page[d*PageRows+row%PageRows]
	}
}
