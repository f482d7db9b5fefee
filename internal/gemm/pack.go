package gemm

import (
	"fmt"
	"runtime"
)

// PackPanels packs the outputs of panels [p0, p1). src is the whole matrix as a file holds
// it: row-major, out × in, little endian. Disjoint ranges may be packed in parallel.
//
// Each type is a transpose of small elements. It goes tile by tile, one cache line of each
// of the panel's rows at a time: rows of a power-of-two length fall into the same few cache
// sets, and a walk down all rows at once would evict each line before its second use.
func (m *Matrix) PackPanels(src []byte, p0, p1 int) {
	row := m.t.rowBytes(m.in)
	if len(src) < m.out*row {
		panic(fmt.Sprintf("gemm: %d bytes for a %v matrix of %d × %d, which has %d", len(src), m.t, m.out, m.in, m.out*row))
	}
	for p := p0; p < p1; p++ {
		dst := m.data[p*m.panel : (p+1)*m.panel]
		rows := min(Panel, m.out-p*Panel)
		for r := range rows {
			packRow(m.t, dst, src[(p*Panel+r)*row:][:row], r)
		}
		for r := rows; r < Panel; r++ {
			padRow(m.t, dst, r)
		}
	}
	runtime.KeepAlive(m)
}

func packRow(t Type, dst, src []byte, lane int) {
	switch t {
	case F32:
		for k := 0; k*4 < len(src); k++ {
			copy(dst[(k*Panel+lane)*4:][:4], src[k*4:])
		}
	case F16:
		for k := 0; k*2 < len(src); k++ {
			copy(dst[(k*Panel+lane)*2:][:2], src[k*2:])
		}
	case BF16:
		for k := 0; k*4 < len(src); k++ {
			copy(dst[(k*Panel+lane)*4:][:4], src[k*4:])
		}
	case Q8_0:
		for b := 0; b*fileBlock < len(src); b++ {
			s, d := src[b*fileBlock:], dst[b*packedBlock:]
			copy(d[lane*2:][:2], s)
			for i := range block {
				d[Panel*2+(i/4*Panel+lane)*4+i%4] = s[2+i] ^ 0x80
			}
		}
	}
}

// padRow gives an output beyond the matrix: weight zero, scale zero.
func padRow(t Type, dst []byte, lane int) {
	if t != Q8_0 {
		return // the memory is zero
	}
	for b := 0; b < len(dst); b += packedBlock {
		for i := range block {
			dst[b+Panel*2+(i/4*Panel+lane)*4+i%4] = 0x80
		}
	}
}
