package gemm

import (
	"encoding/binary"

	"github.com/grovellm/grove/internal/kernels/num"
)

// The K types of llama.cpp: blocks of 256 elements in sub-blocks whose scales are themselves
// integers. With q the bits of an element and x the int8 of an activation,
//
//	Q4_K, Q5_K  w = d·scale·q − dmin·min, for 32 elements each; a block of 32 is
//	            part = fma(Σ q·x, d·scale, part), then part = fma(−Σ x, dmin·min, part)
//	Q6_K, Q3_K  w = d·scale·(q − zero), zero 32 and 4, for 16 elements each; a block of 32 is, of each half
//	            in turn, part = fma(Σ (q−zero)·x, d·scale, part)
//	Q2_K        w = d·scale·q − dmin·min, for 16 elements each; a block of 32 is, of each half in turn,
//	            part = fma(Σ q·x, d·scale, part), then part = fma(−Σ x, dmin·min, part)
//
// The products d·scale and dmin·min are exact in f32, and so are the sums, which are of integers.
// Groups of activations have Group elements, so a block of 256 has two of them: acc = fma(part, dx,
// acc).
//
// A packed panel is, for every 256 elements (little endian),
//
//	[Panel]f16 d; [Panel]f16 dmin (not in Q6_K and Q3_K)
//	8 × {
//	  [Panel]u8 scale; [Panel]u8 min             Q6_K, Q3_K: [2][Panel]int8 scales of the halves
//	                                             Q2_K: [2][Panel]u8 of the halves, scales in the low 4 bits, minimums in the high ones
//	  [4][Panel][4]u8                            byte [i][o][j]: the low 4 bits of output o at element 4i+j, and at 16+4i+j in its high half
//	  Q2_K, Q3_K: [2][Panel][4]u8 instead        bits 2i, 2i+1 of byte [h][o][j]: the low 2 bits of output o at element 16h+4i+j
//	  Q5_K, Q3_K: [Panel][4]u8                   bit i of byte [o][j]: the next bit of output o at element 4i+j
//	  Q6_K: [2][Panel][4]u8                      bits 2i, 2i+1 of byte [h][o][j]: the upper two of output o at element 16h+4i+j
//	}
//
// so that one load and one shift yield four elements of each output in a register. No two outputs
// share a byte, so rows may be copied in parallel.
const (
	super = 256 // elements of a block of a K type

	kX      = block + 12 // bytes of a block of activations:
	kHalves = block      // −32·Σ of its halves
	kSum    = block + 8  // −Σ
	kGroup  = groupBlocks*kX + 4

	kWords = Panel * 4         // bytes of four elements of a panel's outputs
	kLow   = Panel * block / 2 // bytes of the low bits of a packed block

	// Unpacked, this many steps of 256, 41 KB, make a slice: more gain nothing, fewer save the accumulators too often.
	wideSteps = 4
)

// kType is the layout of a K type, in bytes.
type kType struct {
	file   int  // a block of 256 in a file
	head   int  // a packed block's d and dmin
	low    int  // a packed block's low bits
	high   int  // a packed block's upper bits
	packed int  // a packed block of 256
	bits   int  // bits of an element
	zero   int  // what is subtracted from elements: such types have no minimums
	halves bool // each half of a block of 32 has a scale of its own
}

var kTypes = [NumTypes]kType{
	Q4_K: {file: 144, head: 4 * Panel, low: kLow, packed: 4*Panel + super/block*(2*Panel+kLow), bits: 4},
	Q5_K: {file: 176, head: 4 * Panel, low: kLow, high: kWords, packed: 4*Panel + super/block*(2*Panel+kLow+kWords),
		bits: 5},
	Q6_K: {file: 210, head: 2 * Panel, low: kLow, high: 2 * kWords, packed: 2*Panel + super/block*(2*Panel+kLow+2*kWords),
		bits: 6, zero: 32, halves: true},
	Q2_K: {file: 84, head: 4 * Panel, low: kLow / 2, packed: 4*Panel + super/block*(2*Panel+kLow/2), bits: 2, halves: true},
	Q3_K: {file: 110, head: 2 * Panel, low: kLow / 2, high: kWords, packed: 2*Panel + super/block*(2*Panel+kLow/2+kWords),
		bits: 3, zero: 4, halves: true},
}

// kBlock is 256 elements of one output, of four bits or more, split into their fields.
type kBlock struct {
	d, dmin uint16
	scales  [super / 16]uint8                // Q4_K, Q5_K: scale and min of each 32; Q6_K: scales of each 16
	q       [super / block][block / 4]uint32 // of each 32; four elements in each
}

// read splits a block of a file into its fields.
func (k *kType) read(b *kBlock, src []byte) {
	le := binary.LittleEndian
	if k.bits == 6 {
		low, high := src[:128], src[128:192]
		copy(b.scales[:], src[192:208])
		b.d = le.Uint16(src[208:])
		for h := range 2 { // four runs of 32 each: two in the low bits of 64 bytes, two in the high bits
			for i := range block / 4 {
				upper := le.Uint32(high[32*h+4*i:])
				first, second := le.Uint32(low[64*h+4*i:]), le.Uint32(low[64*h+32+4*i:])
				q := b.q[4*h:][:4]
				q[0][i] = first&fourBits | upper&twoBits<<4
				q[1][i] = second&fourBits | upper>>2&twoBits<<4
				q[2][i] = first>>4&fourBits | upper>>4&twoBits<<4
				q[3][i] = second>>4&fourBits | upper>>6&twoBits<<4
			}
		}
		return
	}
	b.d, b.dmin = le.Uint16(src), le.Uint16(src[2:])
	s := src[4:16] // 6 bits each: see tensor's scaleMin
	for j := range 4 {
		b.scales[2*j], b.scales[2*j+1] = s[j]&63, s[j+4]&63
		b.scales[2*j+8], b.scales[2*j+9] = s[j+8]&15|s[j]>>6<<4, s[j+8]>>4|s[j+4]>>6<<4
	}
	low := src[16:]
	if k.bits == 5 {
		low = src[48:]
	}
	for i := range block / 4 {
		for n := 0; n < len(b.q); n += 2 { // pairs of sub-blocks in the halves of 32 bytes
			x := le.Uint32(low[16*n+4*i:])
			b.q[n][i], b.q[n+1][i] = x&fourBits, x>>4&fourBits
		}
		if k.bits == 5 {
			x := le.Uint32(src[16+4*i:])
			for n := range b.q {
				b.q[n][i] |= x >> n & oneBit << 4
			}
		}
	}
}

// The lowest bits of four bytes.
const (
	fourBits = 0x0f0f0f0f
	twoBits  = 0x03030303
	oneBit   = 0x01010101
)

// pack packs a panel that has the given number of rows. Missing rows are zero, because their d and dmin are.
func (k *kType) pack(dst, src []byte, row, rows int) {
	le := binary.LittleEndian
	if rows < Panel {
		clear(dst)
	}
	var b kBlock
	for ; len(dst) > 0; dst, src = dst[k.packed:], src[min(k.file, len(src)):] {
		for r := range rows {
			if k.bits < 4 {
				k.packFew(dst, src[r*row:][:k.file], r)
				continue
			}
			k.read(&b, src[r*row:][:k.file])
			le.PutUint16(dst[r*2:], b.d)
			if k.bits < 6 {
				le.PutUint16(dst[2*Panel+r*2:], b.dmin)
			}
			for n := range b.q {
				q := &b.q[n]
				w := dst[k.head+n*k.step():][:k.step()]
				w[r], w[Panel+r] = b.scales[2*n], b.scales[2*n+1]
				w = w[2*Panel+r*4:]
				for i := range 4 {
					le.PutUint32(w[i*kWords:], q[i]&fourBits|q[4+i]&fourBits<<4)
				}
				switch k.bits {
				case 5:
					fifth := uint32(0)
					for i, x := range q {
						fifth |= x >> 4 & oneBit << i
					}
					le.PutUint32(w[kLow:], fifth)
				case 6:
					for h := range 2 {
						upper := uint32(0)
						for i, x := range q[4*h:][:4] {
							upper |= x >> 4 & twoBits << (2 * i)
						}
						le.PutUint32(w[kLow+h*kWords:], upper)
					}
				}
			}
		}
	}
}

// step returns the bytes of a packed block of 32.
func (k *kType) step() int { return 2*Panel + k.low + k.high }

// elements returns elements 4i to 4i+3 of output o in a packed block of 32, one byte each.
func (k *kType) elements(w []byte, i, o int) uint32 {
	return packedElements(w[2*Panel:], k.bits, i, o)
}

// packedElements returns elements of the given number of bits, from the part of a packed block after its scales.
func packedElements(w []byte, bits, i, o int) uint32 {
	le := binary.LittleEndian
	w = w[o*4:]
	switch bits {
	case 8:
		return le.Uint32(w[i*kWords:])
	case 2, 3:
		q := le.Uint32(w[i/4*kWords:]) >> (i % 4 * 2) & twoBits
		if bits == 3 {
			q |= le.Uint32(w[kLow/2:]) >> i & oneBit << 2
		}
		return q
	}
	q := le.Uint32(w[i%4*kWords:]) >> (i / 4 * 4) & fourBits
	switch bits {
	case 5:
		q |= le.Uint32(w[kLow:]) >> i & oneBit << 4
	case 6:
		q |= le.Uint32(w[kLow+i/4*kWords:]) >> (i % 4 * 2) & twoBits << 4
	}
	return q
}

// scales returns the factors of the sums of half h of a packed block of 32 for output o, of its elements' and of its
// activations'.
func (k *kType) scales(head, w []byte, h, o int) (scale, least float32) {
	d := num.F16(binary.LittleEndian.Uint16(head[o*2:]))
	if k.zero > 0 {
		return d * float32(int8(w[h*Panel+o])), 0
	}
	dmin := num.F16(binary.LittleEndian.Uint16(head[2*Panel+o*2:]))
	if k.halves {
		return d * float32(w[h*Panel+o]&15), dmin * float32(w[h*Panel+o]>>4)
	}
	return d * float32(w[o]), dmin * float32(w[Panel+o])
}

// widen writes 256 elements of one output in f32.
func (k *kType) widen(dst []float32, w []byte, o int) {
	for n := range super / block {
		p := w[k.head+n*k.step():]
		for e := range block {
			scale, least := k.scales(w, p, e/16, o)
			q := int(k.elements(p, e/4, o)>>(e%4*8)&255) - k.zero
			dst[n*block+e] = float32(scale*float32(q)) - least
		}
	}
}

// row computes the product of a panel and a row of activations.
func (k *kType) row(acc *[Panel]float32, w, x []byte) {
	ne := binary.NativeEndian
	for ; len(w) > 0; w = w[k.packed:] {
		for g := range super / Group {
			var part [Panel]float32
			for n := range groupBlocks {
				p := w[k.head+(g*groupBlocks+n)*k.step():]
				var xs [block]int32
				for e := range xs {
					xs[e] = int32(int8(x[e]))
				}
				for o := range part {
					var sums [2]int32
					for i := range block / 4 {
						q, v := k.elements(p, i, o), xs[4*i:][:4]
						sums[i/4] += int32(q&255)*v[0] + int32(q>>8&255)*v[1] + int32(q>>16&255)*v[2] + int32(q>>24)*v[3]
					}
					if !k.halves {
						scale, least := k.scales(w, p, 0, o)
						part[o] = num.FMA(float32(sums[0]+sums[1]), scale, part[o])
						part[o] = num.FMA(native(x[kSum:]), least, part[o])
						continue
					}
					for h, sum := range sums {
						scale, least := k.scales(w, p, h, o)
						minus := int32(ne.Uint32(x[kHalves+4*h:])) / 32 // −Σ
						part[o] = num.FMA(float32(sum+minus*int32(k.zero)), scale, part[o])
						if k.zero == 0 {
							part[o] = num.FMA(float32(minus), least, part[o])
						}
					}
				}
				x = x[kX:]
			}
			scale := native(x)
			x = x[4:]
			for o := range acc {
				acc[o] = num.FMA(part[o], scale, acc[o])
			}
		}
	}
}

// copyRow copies output o of panel s to output i of panel d.
func (k *kType) copyRow(d []byte, i int, s []byte, o int) {
	bytes := func(at, wide int) { copy(d[at+i*wide:][:wide], s[at+o*wide:]) }
	for at := 0; at < len(d); at += k.packed {
		for h := 0; h < k.head; h += 2 * Panel {
			bytes(at+h, 2)
		}
		for n := range super / block {
			w := at + k.head + n*k.step()
			bytes(w, 1)
			bytes(w+Panel, 1)
			for e := 2 * Panel; e < k.step(); e += kWords {
				bytes(w+e, 4)
			}
		}
	}
}
