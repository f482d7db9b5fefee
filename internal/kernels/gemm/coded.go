package gemm

import (
	"encoding/binary"
	"unsafe"

	"github.com/grovellm/grove/internal/kernels/codebook"
	"github.com/grovellm/grove/internal/kernels/num"
)

// The types of package codebook: a factor f for every 16 elements, and an integer v for each
// element. Activations are grouped as for the K types, and a block of 32 computes, for each half in
// turn, part = fma(Σ v·x, f, part), as in Q6_K.
//
// A packed panel holds blocks of 256 as in the file: [K/256][Panel] of them. Whenever a slice of it
// is multiplied, even by one row, it is unpacked in the cache to the form in which kernels of Q6_K
// read unpacked blocks: v + codebook.Zero in a byte. So weights take as much memory as in the file.
// Products start from −Zero·Σx, twice the start of Q6_K's.

// coded reports whether the type belongs to package codebook.
func (t Type) coded() bool { return t >= IQ1_S }

func (t Type) code() codebook.Type { return codebook.Type(t - IQ1_S) }

// packCoded packs a panel that has the given number of rows. Missing rows are zero, because their d is.
func packCoded(t Type, dst, src []byte, row, rows int) {
	clear(dst)
	size := t.code().Bytes()
	for at := 0; at < row; at += size {
		for r := range rows {
			copy(dst[at*Panel+r*size:][:size], src[r*row+at:])
		}
	}
}

// unpackCoded is the inverse of packCoded for output o of a panel.
func unpackCoded(t Type, dst, w []byte, o int) {
	size := t.code().Bytes()
	for at := 0; at < len(dst); at += size {
		copy(dst[at:at+size], w[at*Panel+o*size:])
	}
}

// copyCoded copies output o of panel s to output i of panel d.
func copyCoded(t Type, d []byte, i int, s []byte, o int) {
	size := t.code().Bytes()
	for at := 0; at < len(d); at += size * Panel {
		copy(d[at+i*size:][:size], s[at+o*size:])
	}
}

// widenCoded writes a row, that of output o, in f32.
func widenCoded(t Type, dst []float32, w []byte, o int) {
	size := t.code().Bytes()
	var b codebook.Block
	for at := 0; at < len(dst); at += super {
		t.code().Read(&b, w[at/super*size*Panel+o*size:][:size])
		b.Widen(dst[at:])
	}
}

// rowCoded computes the product of a panel and a row of activations.
func rowCoded(t Type, acc *[Panel]float32, w, x []byte) {
	ne := binary.NativeEndian
	size := t.code().Bytes()
	var b codebook.Block
	for ; len(w) > 0; w, x = w[size*Panel:], x[super/Group*kGroup:] {
		for o := range acc {
			t.code().Read(&b, w[o*size:][:size])
			for g := range super / Group {
				part, xs := float32(0), x[g*kGroup:]
				for i := range Group / 16 { // halves of blocks
					at := i/2*kX + i%2*16
					sum := int32(ne.Uint32(xs[i/2*kX+kHalves+i%2*4:]))
					for e := range 16 {
						q := b.Q[g*Group/8+i*2+e/8] >> (e % 8 * 8) & 255
						sum += int32(q) * int32(int8(xs[at+e]))
					}
					part = num.FMA(float32(sum), b.F[g*Group/16+i], part)
				}
				acc[o] = num.FMA(part, native(xs[groupBlocks*kX:]), acc[o])
			}
		}
	}
}

// doubleHalves turns sums of halves of blocks times −32 into sums times −codebook.Zero.
func doubleHalves(row []byte) {
	ne := binary.NativeEndian
	for ; len(row) >= kGroup; row = row[kGroup:] {
		for b := range groupBlocks {
			h := row[b*kX+kHalves:][:8]
			ne.PutUint32(h, 2*ne.Uint32(h))
			ne.PutUint32(h[4:], 2*ne.Uint32(h[4:]))
		}
	}
}

// wideWords is the 4-byte words of an unpacked block of 32: [2][Panel]f32 of factors, [8][Panel][4]u8 of elements.
const wideWords = 2*Panel + Panel*block/4

// expandCoded unpacks the given number of steps of a panel for a kernel of unpacked blocks.
func expandCoded(t Type, dst, src unsafe.Pointer, steps int) {
	code := t.code()
	size := code.Bytes()
	var b codebook.Block
	for step := range steps {
		to, from := unsafe.Add(dst, step*super/block*wideWords*4), unsafe.Add(src, step*Panel*size)
		words, factors := (*[super / block * wideWords]uint32)(to), (*[super / block * wideWords]float32)(to)
		if expandAsm(t, words, from) {
			continue
		}
		for o := range Panel {
			code.Read(&b, unsafe.Slice((*byte)(unsafe.Add(from, o*size)), size))
			for n := range super / block {
				at := n*wideWords + o
				factors[at], factors[at+Panel] = b.F[2*n], b.F[2*n+1]
				for i, q := range b.Q[n*block/8:][:block/8] {
					words[at+(2+2*i)*Panel], words[at+(3+2*i)*Panel] = uint32(q), uint32(q>>32)
				}
			}
		}
	}
}
