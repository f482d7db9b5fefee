package gemm

import (
	"encoding/binary"

	"github.com/grovellm/grove/internal/kernels/num"
)

// In a file of Q2_K or Q3_K, four runs of 32 elements share 32 bytes, two bits of each, and the third bits of all eight
// runs share another 32. In a packed panel each run has its own bytes. Packing a row is therefore a transposition of
// bits, and unpacking is the same transposition.

// fewParts is where a block of such a file has its parts.
type fewParts struct{ scales, low, third, d int }

func (k *kType) parts() fewParts {
	if k.bits == 2 {
		return fewParts{low: 16, d: 80}
	}
	return fewParts{low: 32, scales: 96, d: 108}
}

// packFew packs a block of 256 of row o of a panel.
func (k *kType) packFew(dst, src []byte, o int) {
	p, step := k.parts(), k.step()
	copy(dst[o*2:], src[p.d:p.d+2])
	if k.bits == 2 {
		copy(dst[2*Panel+o*2:], src[p.d+2:p.d+4])
	}
	for j := range super / 16 {
		s := src[j]
		if k.bits == 3 {
			s = byte(num.Q3Scale(src[p.scales:], j))
		}
		dst[k.head+j/2*step+j%2*Panel+o] = s
	}
	runs := dst[k.head+2*Panel+o*4:]
	for i := range 4 {
		transposeBits(runs[i/2*4*step+i%2*kWords:], src[p.low+16*i:], step, 4, 2)
	}
	if k.bits == 3 {
		transposeBits(runs[k.low:], src[p.third:], step, 4, 1)
	}
}

// unpackFew is the inverse of packFew.
func (k *kType) unpackFew(dst, w []byte, o int) {
	p, step := k.parts(), k.step()
	clear(dst)
	copy(dst[p.d:p.d+2], w[o*2:])
	if k.bits == 2 {
		copy(dst[p.d+2:], w[2*Panel+o*2:][:2])
	}
	for j := range super / 16 {
		s := w[k.head+j/2*step+j%2*Panel+o]
		if k.bits == 2 {
			dst[j] = s
			continue
		}
		s += 32
		dst[p.scales+j%8] |= s & 15 << (j / 8 * 4)
		dst[p.scales+8+j%4] |= s >> 4 << (j / 4 * 2)
	}
	runs := w[k.head+2*Panel+o*4:]
	for i := range 4 {
		transposeBits(dst[p.low+16*i:], runs[i/2*4*step+i%2*kWords:], 4, step, 2)
	}
	if k.bits == 3 {
		transposeBits(dst[p.third:], runs[k.low:], 4, step, 1)
	}
}

// transposeBits copies 8/bits words of four bytes, which are `from` bytes apart in src and `to` bytes apart in dst. In
// each byte, field j of word i, of so many bits, becomes field i of word j.
func transposeBits(dst, src []byte, to, from, bits int) {
	var w [8]uint32
	words := w[:8/bits]
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(src[i*from:])
	}
	for d := 1; d < len(words); d *= 2 {
		places := d * bits
		mask := [...]uint32{1: 0x55555555, 2: 0x33333333, 4: 0x0f0f0f0f}[places]
		for i, a := range words {
			if i&d == 0 { // exchange the lower fields of word i+d with the upper ones of word i
				t := (a>>places ^ words[i+d]) & mask
				words[i] ^= t << places
				words[i+d] ^= t
			}
		}
	}
	for i, x := range words {
		binary.LittleEndian.PutUint32(dst[i*to:], x)
	}
}
