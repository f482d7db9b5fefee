package nn

import (
	"encoding/binary"

	"github.com/grovellm/grove/internal/kernels/gemm"
)

// A page of bf16 holds, for each layer and head, the panels that gemm multiplies: keys, whose
// outputs are the page's rows and whose inputs are dimensions, then values, whose outputs are
// dimensions, one panel for every 32, and whose inputs are rows.
//
//	keys    [Dim/2][32 rows][2]bf16
//	values  [Dim/32][32/2 rows][32 dimensions][2]bf16
//
// Of the two rows in a pair, the later one is stored first. VDPBF16PS adds the product of the
// higher half first, so values are summed row by row in order, and a row with weight 0 changes
// nothing, wherever it stands. Keys have the same layout, which gives scores and weights the same
// order: row r is number r^halfFlip.

// halfFlip turns a row's place within its pair.
const halfFlip = 1

const (
	halfStep  = gemm.Panel * 4          // bytes of two inputs of a panel
	halfPanel = PageRows / 2 * halfStep // bytes of a panel of values
)

var _ = [1]struct{}{}[gemm.Panel-PageRows] // a page is a panel

// keyBytes and headBytes are the bytes of a page's keys, and of its keys and values, for one layer and head.
func (s rowShape) keyBytes() int {
	if s.kv == KVQ8 {
		return (s.dim + gemm.Panel - 1) / gemm.Panel * gemm.BlockBytes
	}
	return (s.dim + 1) / 2 * halfStep
}

func (s rowShape) headBytes() int {
	switch {
	case s.latent > 0:
		return s.keyBytes()
	case s.kv == KVQ8:
		return s.keyBytes() + s.valuePanels()*gemm.BlockBytes
	}
	return s.keyBytes() + s.valuePanels()*halfPanel
}

// valuePanels is the number of panels of values.
func (s rowShape) valuePanels() int { return (s.values() + gemm.Panel - 1) / gemm.Panel }

// panels returns page i's keys and values of a layer and head; no values where they are part of the keys.
func (c *Cache) panels(layer, head, i int) (keys, values []byte) {
	s := c.mem.shapeOf(layer)
	k, size := s.keyBytes(), s.headBytes()
	g, head := c.at(layer, head, i)
	b := g.bytes[head*size:][:size]
	if s.latent > 0 {
		return b, nil
	}
	return b[:k], b[k:]
}

// halfRows is the number of rows of keys that are rounded before they are stored.
const halfRows = 4

// storeHalfKeys stores n rows of one page, at most halfRows.
func (c *Cache) storeHalfKeys(layer, head, slot, n int, k []float32, stride int) {
	page, _ := c.panels(layer, head, slot/PageRows)
	var buf [halfRows][stackDim]uint16
	var rows [halfRows][]uint16
	dim := c.mem.shapeOf(layer).dim
	for i := range n {
		rows[i] = rounded(&buf[i], k[i*stride:][:dim])
	}
	slot %= PageRows
	for d := 0; d < len(rows[0]); d += 2 {
		step := page[d/2*halfStep:][:halfStep]
		for i := range n {
			binary.LittleEndian.PutUint32(step[((slot+i)^halfFlip)*4:], uint32(rows[i][d])|uint32(rows[i][d+1])<<16)
		}
	}
}

func (c *Cache) storeHalfValue(layer, head, slot int, v []float32) {
	_, page := c.panels(layer, head, slot/PageRows)
	var buf [stackDim]uint16
	u := rounded(&buf, v)[:len(v)]
	slot %= PageRows
	page = page[slot/2*halfStep+(slot%2^halfFlip)*2:]
	for ; len(u) > 0; u = u[min(gemm.Panel, len(u)):] {
		for d, x := range u[:min(gemm.Panel, len(u))] {
			binary.LittleEndian.PutUint16(page[d*4:], x)
		}
		page = page[min(halfPanel, len(page)):]
	}
}

// stackDim is the most dimensions of a head that are rounded without allocating.
const stackDim = 576

// rounded returns x in bf16, padded to an even number of elements with a 0.
func rounded(buf *[stackDim]uint16, x []float32) []uint16 {
	u := buf[:]
	if len(x) > len(u) {
		u = make([]uint16, (len(x)+1)&^1)
	}
	gemm.RoundBF16(u, x)
	return u[:(len(x)+1)&^1]
}

// moveHalf copies row src of a page to row dst of a page.
func (s rowShape) moveHalf(to []byte, dst int, from []byte, src int) {
	k, size := s.keyBytes(), s.headBytes()
	for ; len(to) > 0; to, from = to[size:], from[size:] {
		d, f := to[(dst^halfFlip)*4:k], from[(src^halfFlip)*4:k]
		for i := 0; i < len(d); i += halfStep {
			copy(d[i:i+4], f[i:])
		}
		if s.latent > 0 {
			continue
		}
		d, f = to[k+dst/2*halfStep+(dst%2^halfFlip)*2:size], from[k+src/2*halfStep+(src%2^halfFlip)*2:size]
		for v := 0; v < s.valuePanels(); v++ {
			for i := v * halfPanel; i < v*halfPanel+(gemm.Panel-1)*4+2; i += 4 {
				copy(d[i:i+2], f[i:])
			}
		}
	}
}

// blindHalf copies a page of values without the values of unseen rows.
func blindHalf(dst, src []byte, seen uint32) {
	for at := 0; at < len(src); at += halfStep {
		pair := seen >> (at % halfPanel / halfStep * 2)
		mask := uint32(pair&1*0xffff<<16 | pair>>1&1*0xffff) // the earlier row is the higher half
		for i := at; i < at+halfStep; i += 4 {
			binary.LittleEndian.PutUint32(dst[i:], binary.LittleEndian.Uint32(src[i:])&mask)
		}
	}
}
