// Package codebook reads weights of one to three bits: llama.cpp's types whose elements are entries
// of a codebook (the IQ types) or one of two to four integers (TQ1_0, TQ2_0, Q1_0, Q2_0). An
// element is a factor times a small integer, so all products reduce to products of bytes.
//
// Here d is the half-precision scale of a block, s a scale of 3 or 4 bits, and v the integers of an entry:
//
//	IQ1_S, IQ1_M             d/8·(2s+1)·(8v ± 1)   v in −1, 0, 1, of 2048 entries of 8
//	IQ2_XXS, IQ2_XS, IQ2_S   d/8·(2s+1)·±v         v in 8, 25, 43, of 256, 512 and 1024 entries of 8
//	IQ3_XXS                  d/4·(2s+1)·±v         v in 4, 12, 20, …, 52, 62, of 256 entries of 4
//	IQ3_S                    d·(2s+1)·±v           v in 1, 3, …, 15, of 512 entries of 4
//	TQ1_0, TQ2_0             d·v                   v in −1, 0, 1; of TQ2_0, 2 too
//	Q1_0, Q2_0               d·v                   v in −1, 1; in −1, 0, 1, 2
//
// A factor has at most 16 bits and an integer 7, so an element is exact in f32.
package codebook

import (
	"encoding/binary"

	"github.com/grovellm/grove/internal/kernels/num"
)

// Type is one of the encodings.
type Type uint8

const (
	IQ1_S Type = iota
	IQ1_M
	IQ2_XXS
	IQ2_XS
	IQ2_S
	IQ3_XXS
	IQ3_S
	TQ1_0
	TQ2_0
	Q1_0
	Q2_0
	NumTypes
)

// Zero is added to the integers: bytes of a Block are 2 to 126.
const Zero = 64

// Elements is the number of elements of a Block.
const Elements = 256

// Block is 256 elements: for each a byte, its integer + Zero, and for every 16 a factor.
type Block struct {
	Q [Elements / 8]uint64
	F [Elements / 16]float32
}

// kinds has, for each type, the elements and bytes of a block in a file, and the place of its scale.
var kinds = [NumTypes]struct {
	name                   string
	elements, bytes, scale int
}{
	IQ1_S:   {"IQ1_S", 256, 50, 0},
	IQ1_M:   {"IQ1_M", 256, 56, 48}, // four bits in each of four words
	IQ2_XXS: {"IQ2_XXS", 256, 66, 0},
	IQ2_XS:  {"IQ2_XS", 256, 74, 0},
	IQ2_S:   {"IQ2_S", 256, 82, 0},
	IQ3_XXS: {"IQ3_XXS", 256, 98, 0},
	IQ3_S:   {"IQ3_S", 256, 110, 0},
	TQ1_0:   {"TQ1_0", 256, 54, 52},
	TQ2_0:   {"TQ2_0", 256, 66, 64},
	Q1_0:    {"Q1_0", 128, 18, 0},
	Q2_0:    {"Q2_0", 64, 18, 0},
}

// Named finds a type by its name.
func Named(name string) (t Type, ok bool) {
	for t = range NumTypes {
		if kinds[t].name == name {
			return t, true
		}
	}
	return 0, false
}

func (t Type) String() string { return kinds[t].name }

// SetScale sets the scale of a block of a file to d.
func (t Type) SetScale(block []byte, d float32) {
	h := num.ToF16(d)
	at := block[kinds[t].scale:]
	if t != IQ1_M {
		binary.LittleEndian.PutUint16(at, h)
		return
	}
	for i := range 4 {
		at[2*i+1] = at[2*i+1]&15 | byte(h>>(4*i)<<4)
	}
}

// Bytes returns the size of 256 elements in a file, which are one block or several.
func (t Type) Bytes() int { return Elements / kinds[t].elements * kinds[t].bytes }

// Read reads 256 elements from Bytes bytes of a file.
func (t Type) Read(b *Block, src []byte) {
	k := &kinds[t]
	for e := 0; e < Elements; e += k.elements {
		t.factors(b.F[e/16:][:k.elements/16], src)
		t.elements(b.Q[e/8:], src)
		src = src[k.bytes:]
	}
}

// elements reads the elements of one block of a file into the beginning of q. It is a switch, not a
// table of functions, because with a table Blocks would be allocated on the heap.
func (t Type) elements(q []uint64, src []byte) {
	switch t {
	case IQ1_S:
		readIQ1S(q, src)
	case IQ1_M:
		readIQ1M(q, src)
	case IQ2_XXS:
		readIQ2XXS(q, src)
	case IQ2_XS:
		readIQ2XS(q, src)
	case IQ2_S:
		readIQ2S(q, src)
	case IQ3_XXS:
		readIQ3XXS(q, src)
	case IQ3_S:
		readIQ3S(q, src)
	case TQ1_0:
		readTQ1(q, src)
	case TQ2_0:
		readTQ2(q, src)
	case Q1_0:
		readQ1(q, src)
	default:
		readQ2(q, src)
	}
}

// factors reads the factors of one block of a file.
func (t Type) factors(f []float32, src []byte) {
	le := binary.LittleEndian
	if t == IQ1_M {
		scales := le.Uint64(src[48:56])
		d := num.F16(uint16(scales>>12&15|scales>>24&0xf0|scales>>36&0xf00|scales>>48&0xf000)) / 8
		for i := range f {
			f[i] = d * float32(scales>>(i/4*16+i%4*3)&7*2+1)
		}
		return
	}
	d := half(src[kinds[t].scale:])
	switch t {
	case IQ1_S:
		for i := range f {
			f[i] = d / 8 * float32(le.Uint16(src[34+i/2*2:])>>12&7*2+1)
		}
	case IQ2_XXS:
		for i := range f {
			f[i] = d / 8 * float32(src[9+i/2*8]>>4*2+1)
		}
	case IQ2_XS:
		scales4(f, d/8, src[66:74])
	case IQ2_S:
		scales4(f, d/8, src[74:82])
	case IQ3_XXS:
		for i := range f {
			f[i] = d / 4 * float32(src[69+i/2*4]>>4*2+1)
		}
	case IQ3_S:
		for i := range f {
			f[i] = d * float32(src[106+i/4]>>(i/2%2*4)&15*2+1)
		}
	default:
		for i := range f {
			f[i] = d
		}
	}
}

// Decode writes all elements of one block of a file to dst.
func (t Type) Decode(dst []float32, src []byte) {
	var b Block
	k := &kinds[t]
	t.factors(b.F[:k.elements/16], src[:k.bytes])
	t.elements(b.Q[:], src[:k.bytes])
	b.widen(dst[:k.elements])
}

// Widen writes the 256 elements as f32.
func (b *Block) Widen(dst []float32) { b.widen(dst[:Elements]) }

func (b *Block) widen(dst []float32) {
	for e := range dst {
		dst[e] = b.F[e/16] * float32(int(b.Q[e/8]>>(e%8*8)&255)-Zero)
	}
}

const (
	ones  = 0x0101010101010101
	zeros = Zero * ones
)

func half(b []byte) float32 { return num.F16(binary.LittleEndian.Uint16(b)) }

// negate changes the signs of the elements in mask: 128 − q is −(q − 64) + 64.
func negate(q, mask uint64) uint64 { return (q ^ mask) + mask&ones }

// readIQ1S reads d; 32 low bytes of entry numbers; for each 32 elements, 16 bits: three high bits
// of each of the four numbers, 3 bits of s, and the sign of 1.
func readIQ1S(q []uint64, src []byte) {
	q = q[:32]
	low, high := src[2:34], src[34:50]
	for i := range q {
		h := uint(binary.LittleEndian.Uint16(high[i/4*2:]))
		q[i] = grid1[uint(low[i])|h>>(i%4*3)&7<<8] + shifts[h>>12&8]
	}
}

// readIQ1M reads 32 low bytes of entry numbers; for each, 4 bits: three high bits and the sign of
// 1; 16 values of s of 3 bits, four in each 16 bits, whose upper four bits are d's.
func readIQ1M(q []uint64, src []byte) {
	q = q[:32]
	low, high := src[:32], src[32:48]
	for i := range q {
		h := uint(high[i/2]>>(i%2*4)) & 15
		q[i] = grid1[uint(low[i])|h&7<<8] + shifts[h]
	}
}

// readIQ2XXS reads d; for each 32 elements, four bytes of entry numbers, four times 7 bits of signs, 4 bits of s.
func readIQ2XXS(q []uint64, src []byte) {
	q = q[:32]
	for i := range 8 {
		entries := src[2+8*i:][:4]
		signs := binary.LittleEndian.Uint32(src[6+8*i:])
		for j, entry := range entries {
			q[4*i+j] = negate(grid2XXS[entry], sevenSigns[signs>>(7*j)&127])
		}
	}
}

// readIQ2XS reads d; for each 8 elements, 9 bits of entry number and 7 of signs; for each 16, 4 bits of s.
func readIQ2XS(q []uint64, src []byte) {
	q = q[:32]
	for i := range q {
		code := binary.LittleEndian.Uint16(src[2+2*i:])
		q[i] = negate(grid2XS[code&511], sevenSigns[code>>9])
	}
}

// scales4 computes factors from d/8 or similar and bytes of two 4-bit scales.
func scales4(f []float32, d float32, scales []byte) {
	for i, s := range scales {
		f[2*i], f[2*i+1] = d*float32(s&15*2+1), d*float32(s>>4*2+1)
	}
}

// readIQ2S reads d; 32 low bytes of entry numbers; 32 bytes of signs; two high bits of each number; s as in IQ2_XS.
func readIQ2S(q []uint64, src []byte) {
	q = q[:32]
	low, high := src[2:34], src[66:74]
	signs := src[34:66]
	for i := range q {
		q[i] = negate(grid2S[uint(low[i])|uint(high[i/4])>>(i%4*2)&3<<8], eightSigns[signs[i]])
	}
}

// readIQ3XXS reads d; 64 entry numbers; for each 32 elements, four times 7 bits of signs and 4 bits of s.
func readIQ3XXS(q []uint64, src []byte) {
	q = q[:32]
	for i := range 8 {
		entries := src[2+8*i:][:8]
		signs := binary.LittleEndian.Uint32(src[66+4*i:])
		for j := range 4 {
			v := uint64(grid3XXS[entries[2*j]]) | uint64(grid3XXS[entries[2*j+1]])<<32
			q[4*i+j] = negate(v, sevenSigns[signs>>(7*j)&127])
		}
	}
}

// readIQ3S reads d; 64 low bytes of entry numbers; one high bit of each; 32 bytes of signs; for
// each 32 elements, 4 bits of s.
func readIQ3S(q []uint64, src []byte) {
	q = q[:32]
	low, high := src[2:66], src[66:74]
	signs := src[74:106]
	for i := range q {
		h := uint(high[i/4]) >> (i % 4 * 2)
		v := uint64(grid3S[uint(low[2*i])|h&1<<8]) | uint64(grid3S[uint(low[2*i+1])|h>>1&1<<8])<<32
		q[i] = negate(v, eightSigns[signs[i]])
	}
}

// readTQ1 reads 32 bytes of five elements each, 32 apart; 16 of five, 16 apart; 4 of four, 4 apart;
// d. A byte is a fraction of 256 whose base-3 digits are v + 1.
func readTQ1(q []uint64, src []byte) {
	q = q[:32]
	for i := range 4 {
		digits(q[i:], src[8*i:], 4)
	}
	for i := range 2 {
		digits(q[20+i:], src[32+8*i:], 2)
	}
	var last [5]uint64
	var rest [8]byte
	copy(rest[:4], src[48:52])
	digits(last[:], rest[:], 1)
	q[30] = last[0]&0xffffffff | last[1]<<32
	q[31] = last[2]&0xffffffff | last[3]<<32
}

// digits writes the five digits of each of eight bytes. Successive digits are apart words from each other.
func digits(q []uint64, src []byte, apart int) {
	const even = 0x00ff00ff00ff00ff
	x := binary.LittleEndian.Uint64(src)
	a, b := x&even, x>>8&even
	for n := range 5 {
		a, b = a*3, b*3
		q[n*apart] = (a>>8&(3*ones&even) | b&(3*ones&^even)) + (zeros - ones)
		a, b = a&even, b&even
	}
}

// readTQ2 reads, for each 128 elements, 32 bytes of four elements, 32 apart, of 2 bits: v + 1; then d.
func readTQ2(q []uint64, src []byte) {
	q = q[:32]
	for i := range 8 {
		x := binary.LittleEndian.Uint64(src[8*i:])
		for n := range 4 {
			q[i/4*16+n*4+i%4] = x>>(2*n)&(3*ones) + (zeros - ones)
		}
	}
}

// readQ1 reads d; a bit for each of 128 elements, 1 for d and 0 for −d.
func readQ1(q []uint64, src []byte) {
	for i, bits := range src[2:18] {
		q[i] = eightSigns[bits]&(2*ones) + (zeros - ones)
	}
}

// readQ2 reads d; 2 bits for each of 64 elements: v + 1.
func readQ2(q []uint64, src []byte) {
	for i := range q[:8] {
		q[i] = pairs[src[2+2*i]] | pairs[src[3+2*i]]<<32
	}
}
