package gemm

import (
	"fmt"
	"runtime"
)

// CopyRow copies the weights of output o of src to output i of m, bit for bit in packed form: this
// fills a matrix whose order we choose. Outputs of different panels may be copied in parallel.
func (m *Matrix) CopyRow(i int, src *Matrix, o int) {
	if m.t != src.t || m.in != src.in {
		panic(fmt.Sprintf("gemm: a row of %d %v weights for a matrix of %d %v", src.in, src.t, m.in, m.t))
	}
	if i < 0 || i >= m.out || o < 0 || o >= src.out {
		panic(fmt.Sprintf("gemm: row %d of %d becoming row %d of %d", o, src.out, i, m.out))
	}
	d, s := m.data[i/Panel*m.panel:][:m.panel], src.data[o/Panel*src.panel:][:src.panel]
	i, o = i%Panel, o%Panel
	switch m.t {
	case F32, BF16: // words, of one element or a pair
		for at := 0; at < len(d); at += Panel * 4 {
			copy(d[at+i*4:][:4], s[at+o*4:])
		}
	case F16:
		for at := 0; at < len(d); at += Panel * 2 {
			copy(d[at+i*2:][:2], s[at+o*2:])
		}
	case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
		kTypes[m.t].copyRow(d, i, s, o)
	case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4:
		blockTypes[m.t].copyRow(d, i, s, o)
	default:
		copyCoded(m.t, d, i, s, o)
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(src)
}
