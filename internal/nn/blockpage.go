package nn

import (
	"encoding/binary"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// A page of Q8_0 holds, for each layer and head, int8 numbers with an f16 scale for every 32
// dimensions of a row. Keys are panels of gemm, whose outputs are the page's rows, so scores are
// Q8_0 products: queries are also rounded to blocks of int8. Values are, for every 32 dimensions,
//
//	[32 rows]f16 scales
//	[32/2 rows][32 dimensions][2]int8
//
// with int8 where a page of bf16 has bf16. A value of row j is d[j]·q[j]. The scale of its block is a
// factor of the row's weight, and bf16 holds every int8, so the mean of the values is a BF16 product of the
// int8 and the weights times the scales, rounded to bf16. Row r is number r^halfFlip, as in a page of bf16.

// blockDims is the number of dimensions that share a scale.
const blockDims = 32

var _ = [1]struct{}{}[gemm.Panel-blockDims] // a panel of values has this many

const (
	blockHead  = 2 * PageRows           // bytes of a panel's scales
	blockStep  = 2 * blockDims          // bytes of a pair of rows
	wideBlocks = 4                      // pages whose values, within a panel, are widened at once
	wideBytes  = wideBlocks * halfPanel // bytes that they take
)

// blockRow is room for a head's row in blocks, padded with zeros.
type blockRow struct {
	x [stackDim]float32
	q [stackDim / blockDims * (blockDims + 8)]byte
}

// quantize returns v in blocks.
func (r *blockRow) quantize(v []float32) gemm.Blocks {
	n := (len(v) + blockDims - 1) / blockDims * blockDims
	x, q := r.x[:], r.q[:]
	if n > len(x) {
		x, q = make([]float32, n), make([]byte, gemm.QuantizedBytes(n))
	}
	if n > len(v) {
		clear(x[copy(x, v):n])
		v = x[:n]
	}
	return gemm.QuantizeBlocks(q[:gemm.QuantizedBytes(n)], v)
}

// storeBlockKey stores a Q8_0 key.
func (c *Cache) storeBlockKey(layer, head, slot int, k []float32) {
	var row blockRow
	page, _ := c.panels(layer, head, slot/PageRows)
	row.quantize(k).StoreLane(page, slot%PageRows^halfFlip)
}

func (c *Cache) storeBlockValue(layer, head, slot int, v []float32) {
	var row blockRow
	_, page := c.panels(layer, head, slot/PageRows)
	b := row.quantize(v)
	slot %= PageRows
	for i := range b.Len() {
		q, scale := b.Block(i)
		panel := page[i*gemm.BlockBytes:][:gemm.BlockBytes]
		binary.LittleEndian.PutUint16(panel[(slot^halfFlip)*2:], scale)
		panel = panel[blockHead+slot/2*blockStep+(slot%2^halfFlip):]
		for d, x := range q {
			panel[2*d] = x
		}
	}
}

// loadBlockKey reads one head's key of a layer from a row.
func (c *Cache) loadBlockKey(key []float32, layer, head, row int) {
	page, _ := c.panels(layer, head, row/PageRows)
	gemm.LoadLane(key, page, row%PageRows^halfFlip)
}

// moveBlocks copies row src of a page to row dst of a page.
func (s rowShape) moveBlocks(to []byte, dst int, from []byte, src int) {
	dst, src = dst^halfFlip, src^halfFlip
	k, size := s.keyBytes(), s.headBytes()
	for ; len(to) > 0; to, from = to[size:], from[size:] {
		gemm.CopyLane(to[:k], dst, from[:k], src)
		for v := k; v < size; v += gemm.BlockBytes {
			d, f := to[v:v+gemm.BlockBytes], from[v:v+gemm.BlockBytes]
			copy(d[2*dst:2*dst+2], f[2*src:])
			d, f = d[blockHead+dst/2*blockStep+dst%2:], f[blockHead+src/2*blockStep+src%2:]
			for i := 0; i < 2*blockDims-1; i += 2 {
				d[i] = f[i]
			}
		}
	}
}

// quantizeQueries rounds queries to the form in which products with Q8_0 keys read them.
func (t *attendTask) quantizeQueries(x *gemm.Input) {
	d := t.a.Dim
	n := (d + blockDims - 1) / blockDims * blockDims
	x.Reset(gemm.Q8_0, t.n, n)
	for i := range t.n {
		q := t.q[i*d : (i+1)*d]
		if n > d {
			t.s.scaled = grow(t.s.scaled, n)
			clear(t.s.scaled[copy(t.s.scaled, q):n])
			q = t.s.scaled[:n]
		}
		x.SetRow(i, q)
	}
}

// mixBlocks is mix for pages of Q8_0. If its results are not finite, it is repeated with apart set:
// slots that a row does not see then have weight 0 whatever their scales are.
func (t *attendTask) mixBlocks(apart bool) {
	c, s := t.g.Cache, t.s
	panels, width := c.mem.shapeOf(t.layer).valuePanels(), len(t.pages)*PageRows
	x := &s.rounded[1]
	x.Reset(gemm.BF16, panels*t.n, width)
	s.scaled, s.scales = grow(s.scaled, width), grow(s.scales, 2*width)
	for b := range panels {
		for i, p := range t.pages {
			values := t.blockValues(int(p))
			scales := s.scales[i*blockHead:][:blockHead]
			copy(scales, values[b*gemm.BlockBytes:])
			for slot := max(0, t.last-int(p)*PageRows); slot < PageRows; slot++ { // these slots are empty
				binary.LittleEndian.PutUint16(scales[(slot^halfFlip)*2:], 0)
			}
		}
		for i := range t.n {
			y := s.scaled[:width]
			simd.MulF16(y, t.w[i*t.stride:][:width], s.scales[:2*width])
			if apart {
				t.clearUnseen(y, t.rows[i/t.group])
			}
			x.SetRow(b*t.n+i, y)
		}
	}
	s.wide = grow(s.wide, wideBytes)
	for i := 0; i < len(t.pages); i += wideBlocks {
		n := min(wideBlocks, len(t.pages)-i)
		for b := range panels {
			for k := range n {
				simd.IntsToBF16(s.wide[k*halfPanel:][:halfPanel], t.blockInts(int(t.pages[i+k]), b))
			}
			var next []byte
			if p := i + wideBlocks + b; b < wideBlocks && p < len(t.pages) {
				_, next = c.panels(t.layer, t.head, int(t.pages[p]))
			}
			products := x.ByPanels(b*t.n, (b+1)*t.n)
			products.Mul(t.res.o[b*t.n*gemm.Panel:], gemm.Panel, i*PageRows, s.wide[:n*halfPanel], next, i > 0)
		}
	}
}

// clearUnseen sets the weights y of the slots that a row does not see to 0.
func (t *attendTask) clearUnseen(y []float32, r forestRow) {
	from, to := t.sees(r)
	for i, p := range t.pages {
		seen := t.g.sees(t.f, r, int(p), from, to)
		for slot := range PageRows {
			if seen>>slot&1 == 0 {
				y[i*PageRows+(slot^halfFlip)] = 0
			}
		}
	}
}
