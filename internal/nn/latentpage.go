package nn

import (
	"encoding/binary"

	"github.com/grovellm/grove/internal/kernels/gemm"
)

// Where values are the first dimensions of keys, a page holds only keys. They lie dimension by dimension, but
// values are multiplied row by row, so a worker makes values from the keys in its scratch when it reaches a page.

// values returns a page's values in f32: PageRows × the dimensions of a value.
func (t *attendTask) values(page int) []float32 {
	n := t.a.Latent
	if n == 0 {
		return t.g.Cache.Values(t.layer, t.head, page)
	}
	keys := t.g.Cache.Keys(t.layer, t.head, page)
	t.s.latent.data = grow(t.s.latent.data, n*PageRows)
	v := t.s.latent.data
	for d := range n {
		for row, x := range keys[d*PageRows : (d+1)*PageRows] {
			v[row*n+d] = x
		}
	}
	return v
}

// halfValues returns a page's values in bf16. Two dimensions of two rows, which lie side by side in
// keys, become two rows of two dimensions.
func (t *attendTask) halfValues(page int) []byte {
	keys, values := t.g.Cache.panels(t.layer, t.head, page)
	if t.a.Latent == 0 {
		return values
	}
	size := t.g.Cache.mem.shapeOf(t.layer).valuePanels() * halfPanel
	t.s.latent.bytes = grow(t.s.latent.bytes, size)
	values = t.s.latent.bytes
	for d := 0; d < size/PageRows/2; d += 2 {
		panel := values[d/gemm.Panel*halfPanel+d%gemm.Panel*4:]
		for pair := range PageRows / 2 {
			x := uint64(0)
			if at := d / 2 * halfStep; at < len(keys) {
				x = binary.LittleEndian.Uint64(keys[at+pair*8:])
			}
			x = x&0xffff00000000ffff | x>>32&0xffff<<16 | x>>16&0xffff<<32
			binary.LittleEndian.PutUint64(panel[pair*halfStep:], x)
		}
	}
	return values
}

// blockValues returns a page's values in Q8_0, or keys that begin with them: their scales have the same layout.
func (t *attendTask) blockValues(page int) []byte {
	keys, values := t.g.Cache.panels(t.layer, t.head, page)
	if t.a.Latent > 0 {
		return keys
	}
	return values
}

// blockInts returns the int8 of block b of a page's values in Q8_0.
func (t *attendTask) blockInts(page, b int) []byte {
	block := t.blockValues(page)[b*gemm.BlockBytes:][:gemm.BlockBytes]
	if t.a.Latent == 0 {
		return block[blockHead:]
	}
	t.s.latent.bytes = grow(t.s.latent.bytes, gemm.BlockBytes-blockHead)
	gemm.PairLanes(t.s.latent.bytes, block)
	return t.s.latent.bytes
}
