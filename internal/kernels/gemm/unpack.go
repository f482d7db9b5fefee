package gemm

import (
	"encoding/binary"
	"fmt"
	"runtime"
)

// UnpackRow writes output i to dst as stored in a file: RowBytes bytes, which PackPanels reads.
func (m *Matrix) UnpackRow(dst []byte, i int) {
	if i < 0 || i >= m.out || len(dst) != m.RowBytes() {
		panic(fmt.Sprintf("gemm: row %d of %d into %d bytes: want %d", i, m.out, len(dst), m.RowBytes()))
	}
	w, lane := m.data[i/Panel*m.panel:][:m.panel], i%Panel
	word := 4
	switch m.t {
	case F16:
		word = 2
		fallthrough
	case F32, BF16:
		for at := 0; at < len(dst); at += word {
			copy(dst[at:], w[(at/word*Panel+lane)*word:][:word])
		}
	case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
		kTypes[m.t].unpack(dst, w, lane)
	case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4:
		blockTypes[m.t].unpack(dst, w, lane)
	default:
		unpackCoded(m.t, dst, w, lane)
	}
	runtime.KeepAlive(m)
}

// RowBytes is the size of a row in a file.
func (m *Matrix) RowBytes() int { return m.t.rowBytes(m.in) }

// unpack is the inverse of pack for output o of a panel.
func (k *kType) unpack(dst, w []byte, o int) {
	le := binary.LittleEndian
	var b kBlock
	for ; len(dst) > 0; dst, w = dst[k.file:], w[k.packed:] {
		if k.bits < 4 {
			k.unpackFew(dst[:k.file], w, o)
			continue
		}
		b.d, b.dmin = le.Uint16(w[o*2:]), le.Uint16(w[2*Panel+o*2:]) // for Q6_K, dmin is meaningless and is not written
		for n := range super / block {
			p := w[k.head+n*k.step():]
			b.scales[2*n], b.scales[2*n+1] = p[o], p[Panel+o]
			for i := range block / 4 {
				b.q[n][i] = k.elements(p, i, o)
			}
		}
		k.write(&b, dst[:k.file])
	}
}

// write is the inverse of read.
func (k *kType) write(b *kBlock, dst []byte) {
	le := binary.LittleEndian
	clear(dst)
	if k.bits == 6 {
		for n := range b.q {
			h := n / 4
			r := n % 4
			for i, q := range b.q[n] {
				or(dst[64*h+r%2*32+4*i:], q&fourBits<<(r/2*4))
				or(dst[128+32*h+4*i:], q>>4&twoBits<<(2*r))
			}
		}
		copy(dst[192:], b.scales[:])
		le.PutUint16(dst[208:], b.d)
		return
	}
	le.PutUint16(dst, b.d)
	le.PutUint16(dst[2:], b.dmin)
	for j := range 4 {
		scale, low := b.scales[2*j+8], b.scales[2*j+9]
		dst[4+j] = b.scales[2*j] | scale>>4<<6
		dst[8+j] = b.scales[2*j+1] | low>>4<<6
		dst[12+j] = scale&15 | low<<4
	}
	low := dst[16:]
	if k.bits == 5 {
		low = dst[48:]
	}
	for n := range b.q {
		for i, q := range b.q[n] {
			or(low[n/2*32+4*i:], q&fourBits<<(n%2*4))
			if k.bits == 5 {
				or(dst[16+4*i:], q>>4&oneBit<<n)
			}
		}
	}
}

func or(b []byte, bits uint32) {
	binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)|bits)
}
