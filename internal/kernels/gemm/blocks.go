package gemm

import (
	"encoding/binary"

	"github.com/grovellm/grove/internal/kernels/num"
)

// The types of llama.cpp whose blocks have 32 elements. With q the bits of an element, x the int8
// of an activation, d and m a block's scale and minimum, and dx the scale of the activations,
//
//	Q8_0, Q4_0, Q5_0  w = d·(q − zero), zero the middle of q's range: acc = fma(Σ (q−zero)·x, d·dx, acc)
//	Q4_1, Q5_1        w = d·q + m: acc = fma(Σ q·x, d·dx, acc), then acc = fma(Σx·dx, m, acc)
//	IQ4_NL, MXFP4     w = d·v[q]: acc = fma(Σ v[q]·x, d·dx, acc)
//
// The sums are exact. A packed panel is, for every 32 elements (little endian),
//
//	[Panel]f16 d (MXFP4: bf16); [Panel]f16 m (Q4_1, Q5_1)
//	Q8_0: [8][Panel][4]u8   byte [i][o][j]: output o at element 4i+j
//	else: [4][Panel][4]u8   byte [i][o][j]: the low 4 bits of output o at element 4i+j, and at 16+4i+j in its high half
//	Q5_0, Q5_1: [Panel][4]u8   bit i of byte [o][j]: the fifth bit of output o at element 4i+j
//
// which is the size of the blocks in the file, except for MXFP4, where d is 2^(e−128) and e is one byte.
// Bytes of Q8_0 are weight+128, since VPDPBUSD needs one unsigned operand. Its products, and those of Q4_0
// and Q5_0, start from −zero·Σx. So do those of IQ4_NL and MXFP4, where zero is added to v in the tables.

// blockType is the layout of a type with blocks of 32, in bytes.
type blockType struct {
	file   int // a block in a file
	head   int // a packed block's scales and minimums
	packed int // a packed block
	bits   int // bits of an element

	values   *[16]int8 // the values of elements; nil: the elements themselves
	exponent bool      // the scale in a file is a byte e, which stands for 2^(e−128)
}

var blockTypes = [NumTypes]blockType{
	Q8_0: {file: 34, head: 2 * Panel, packed: 34 * Panel, bits: 8},
	Q4_0: {file: 18, head: 2 * Panel, packed: 18 * Panel, bits: 4},
	Q4_1: {file: 20, head: 4 * Panel, packed: 20 * Panel, bits: 4},
	Q5_0: {file: 22, head: 2 * Panel, packed: 22 * Panel, bits: 5},
	Q5_1: {file: 24, head: 4 * Panel, packed: 24 * Panel, bits: 5},

	IQ4_NL: {file: 18, head: 2 * Panel, packed: 18 * Panel, bits: 4, values: &num.IQ4},
	MXFP4:  {file: 17, head: 2 * Panel, packed: 18 * Panel, bits: 4, values: &num.MXFP4, exponent: true},
}

// minimum reports whether a block has a minimum.
func (b *blockType) minimum() bool { return b.head > 2*Panel }

// middle returns the number that is subtracted from elements.
func (b *blockType) middle() int32 {
	switch {
	case b.minimum():
		return 0
	case b.values != nil:
		return tableZero
	}
	return 1 << (b.bits - 1)
}

// tableZero is added to the values of a table to make them unsigned bytes.
const tableZero = 128

// elements returns four elements of output o of a packed block, one byte each, before middle is subtracted.
func (b *blockType) elements(w []byte, i, o int) uint32 {
	q := packedElements(w[b.head:], b.bits, i, o)
	if v := b.values; v != nil {
		const flip = tableZero * 0x01010101
		return uint32(uint8(v[q&15])) ^ uint32(uint8(v[q>>8&15]))<<8 ^ uint32(uint8(v[q>>16&15]))<<16 ^
			uint32(uint8(v[q>>24&15]))<<24 ^ flip
	}
	return q
}

// flip returns the bits in which four bytes of a file's elements differ from packed ones: Q8_0's are signed.
func (b *blockType) flip() uint32 {
	if b.bits == 8 {
		return 0x80808080
	}
	return 0
}

// parts returns the parts of a block in a file: scale and minimum, the fifth bits, the other bits.
func (b *blockType) parts(src []byte) (head, fifth, low []byte) {
	at := b.file - block*b.bits/8
	head = src[:at]
	fifth = src[at:at]
	low = src[at:]
	if b.bits == 5 {
		fifth, low = low[:4], low[4:]
	}
	return head, fifth, low
}

// pack packs a panel that has the given number of rows. The results of missing rows are never read.
func (b *blockType) pack(dst, src []byte, row, rows int) {
	le, flip := binary.LittleEndian, b.flip()
	for ; len(dst) > 0; dst, src = dst[b.packed:], src[min(b.file, len(src)):] {
		for r := range rows {
			head, fifth, low := b.parts(src[r*row:][:b.file])
			if b.exponent {
				le.PutUint16(dst[r*2:], num.ToBF16(num.ScaleMXFP4(head[0])))
			} else {
				for i := 0; i < len(head); i += 2 {
					le.PutUint16(dst[i*Panel+r*2:], le.Uint16(head[i:]))
				}
			}
			d := dst[b.head+r*4 : b.packed]
			for i := 0; i < len(low); i += 4 {
				le.PutUint32(d[i*Panel:], le.Uint32(low[i:])^flip)
			}
			if b.bits == 5 {
				le.PutUint32(d[kLow:], spreadFifth(le.Uint32(fifth)))
			}
		}
	}
}

// spreadFifth moves bit 4i+j to bit i of byte j.
func spreadFifth(bits uint32) (spread uint32) {
	for i := range 8 {
		spread |= bits >> (4 * i) & 15 * (1 + 1<<7 + 1<<14 + 1<<21) & oneBit << i
	}
	return spread
}

// gatherFifth is the inverse of spreadFifth.
func gatherFifth(spread uint32) (bits uint32) {
	for i := range 8 {
		bits |= spread >> i & oneBit * (1<<7 + 1<<14 + 1<<21 + 1<<28) >> 28 << (4 * i)
	}
	return bits
}

// unpack is the inverse of pack for output o of a panel.
func (b *blockType) unpack(dst, w []byte, o int) {
	le, flip := binary.LittleEndian, b.flip()
	for ; len(dst) > 0; dst, w = dst[b.file:], w[b.packed:] {
		head, fifth, low := b.parts(dst[:b.file])
		if b.exponent {
			head[0] = num.ExponentMXFP4(num.BF16(le.Uint16(w[o*2:])))
		} else {
			for i := 0; i < len(head); i += 2 {
				copy(head[i:i+2], w[i*Panel+o*2:])
			}
		}
		s := w[b.head+o*4 : b.packed]
		for i := 0; i < len(low); i += 4 {
			le.PutUint32(low[i:], le.Uint32(s[i*Panel:])^flip)
		}
		if b.bits == 5 {
			le.PutUint32(fifth, gatherFifth(le.Uint32(s[kLow:])))
		}
	}
}

// scales returns the scale and the minimum of output o in a packed block.
func (b *blockType) scales(w []byte, o int) (d, m float32) {
	if b.exponent {
		return num.BF16(binary.LittleEndian.Uint16(w[o*2:])), 0
	}
	d = num.F16(binary.LittleEndian.Uint16(w[o*2:]))
	if b.minimum() {
		m = num.F16(binary.LittleEndian.Uint16(w[2*Panel+o*2:]))
	}
	return d, m
}

// widen writes a row, that of output o, in f32.
func (b *blockType) widen(dst []float32, w []byte, o int) {
	for ; len(dst) > 0; dst, w = dst[block:], w[b.packed:] {
		d, m := b.scales(w, o)
		for e := range block {
			q := b.elements(w, e/4, o) >> (e % 4 * 8) & 255
			dst[e] = d * float32(int32(q)-b.middle())
			if b.minimum() {
				dst[e] += m
			}
		}
	}
}

// row computes the product of a panel and a row of activations.
func (b *blockType) row(acc *[Panel]float32, w, x []byte) {
	for ; len(w) > 0; w, x = w[b.packed:], x[xBlock:] {
		var xs [block]int32
		all := int32(0)
		for e := range xs {
			xs[e] = int32(int8(x[e]))
			all += xs[e]
		}
		scale := native(x[xScale:])
		for o := range acc {
			sum := -b.middle() * all
			for i := range block / 4 {
				q, v := b.elements(w, i, o), xs[4*i:][:4]
				sum += int32(q&255)*v[0] + int32(q>>8&255)*v[1] + int32(q>>16&255)*v[2] + int32(q>>24)*v[3]
			}
			d, m := b.scales(w, o)
			acc[o] = num.FMA(float32(sum), float32(d*scale), acc[o])
			if b.minimum() {
				acc[o] = num.FMA(-native(x[xSum:]), m, acc[o])
			}
		}
	}
}

// copyRow copies output o of panel s to output i of panel d.
func (b *blockType) copyRow(d []byte, i int, s []byte, o int) {
	for at := 0; at < len(d); at += b.packed {
		for h := at; h < at+b.head; h += 2 * Panel {
			copy(d[h+i*2:][:2], s[h+o*2:])
		}
		for w := at + b.head; w < at+b.packed; w += kWords {
			copy(d[w+i*4:][:4], s[w+o*4:])
		}
	}
}
