package gemm

import (
	"encoding/binary"
	"fmt"
	"runtime"
)

// PackPanels packs the outputs of panels [p0, p1). src is the whole matrix as stored in a file:
// row-major, out × in, little endian. Disjoint ranges may be packed in parallel.
//
// Each type is a transpose of small words, which are moved unchanged, whatever they mean. It
// proceeds tile by tile, two cache lines of each of the panel's rows at a time, because rows whose
// length is a power of two fall into the same few cache sets: walking down all of them at once
// would evict each line before its second use.
func (m *Matrix) PackPanels(src []byte, p0, p1 int) {
	row := m.t.rowBytes(m.in)
	if len(src) < m.out*row {
		panic(fmt.Sprintf("gemm: %d bytes for a %v matrix of %d × %d, which has %d", len(src), m.t, m.out, m.in, m.out*row))
	}
	if p0 < p1 {
		m.PackRows(src[p0*Panel*row:], p0, p1)
	}
}

// PackRows is PackPanels for a src that begins with the rows of panel p0, and may end with those of
// panel p1 − 1.
func (m *Matrix) PackRows(src []byte, p0, p1 int) {
	row := m.t.rowBytes(m.in)
	for p := p0; p < p1; p++ {
		dst := m.data[p*m.panel : (p+1)*m.panel]
		rows := min(Panel, m.out-p*Panel)
		from := src[(p-p0)*Panel*row:][:rows*row]
		switch m.t {
		case F32:
			packWords(dst, from, row, rows)
		case F16:
			packHalves(dst, from, row, rows)
		case BF16:
			packWords(dst, from, row, rows)
			if m.in%2 == 1 {
				for r := range rows { // the last k is half a word
					copy(dst[m.in/2*Panel*4+r*4:], from[(r+1)*row-2:(r+1)*row])
				}
			}
		case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
			kTypes[m.t].pack(dst, from, row, rows)
		case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4:
			blockTypes[m.t].pack(dst, from, row, rows)
		default:
			packCoded(m.t, dst, from, row, rows)
		}
	}
	runtime.KeepAlive(m)
}

const packTile = 128 // bytes of a row at a time

// packWords transposes rows of 4-byte words.
func packWords(dst, src []byte, row, rows int) {
	ne := binary.NativeEndian
	for at := 0; at < row; at += packTile {
		n := min(packTile, row-at) &^ 3
		for r := range rows {
			s, d := src[r*row+at:][:n], dst[at*Panel+r*4:]
			for len(s) >= 16 && len(d) >= 3*Panel*4+4 {
				a := ne.Uint32(s)
				b := ne.Uint32(s[4:])
				c := ne.Uint32(s[8:])
				e := ne.Uint32(s[12:])
				ne.PutUint32(d, a)
				ne.PutUint32(d[Panel*4:], b)
				ne.PutUint32(d[2*Panel*4:], c)
				ne.PutUint32(d[3*Panel*4:], e)
				s, d = s[16:], d[min(4*Panel*4, len(d)):]
			}
			for ; len(s) >= 4; s = s[4:] {
				ne.PutUint32(d, ne.Uint32(s))
				d = d[min(Panel*4, len(d)):]
			}
		}
	}
}

// packHalves transposes rows of 2-byte words.
func packHalves(dst, src []byte, row, rows int) {
	ne := binary.NativeEndian
	for at := 0; at < row; at += packTile {
		n := min(packTile, row-at)
		for r := range rows {
			s, d := src[r*row+at:][:n], dst[at*Panel+r*2:]
			for len(s) >= 8 && len(d) >= 3*Panel*2+2 {
				a := ne.Uint16(s)
				b := ne.Uint16(s[2:])
				c := ne.Uint16(s[4:])
				e := ne.Uint16(s[6:])
				ne.PutUint16(d, a)
				ne.PutUint16(d[Panel*2:], b)
				ne.PutUint16(d[2*Panel*2:], c)
				ne.PutUint16(d[3*Panel*2:], e)
				s, d = s[8:], d[min(4*Panel*2, len(d)):]
			}
			for ; len(s) >= 2; s = s[2:] {
				ne.PutUint16(d, ne.Uint16(s))
				d = d[min(Panel*2, len(d)):]
			}
		}
	}
}
