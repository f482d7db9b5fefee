package gemm

import (
	"encoding/binary"
	"math"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/num"
)

// Panels of Q8_0 in the caller's memory (panelproduct.go) are written output by output, each of
// which would be a row of a matrix.

// BlockBytes is the size of a block of 32 elements of a panel of Q8_0.
const BlockBytes = 34 * Panel

// Blocks is a row quantised in blocks of 32 elements, like a row of a Q8_0 input.
type Blocks struct {
	row []byte
	n   int
}

// QuantizedBytes is the size of n elements, a multiple of 32, after QuantizeBlocks.
func QuantizedBytes(n int) int { return quantizedBytes(Q8_0, n) }

// QuantizeBlocks quantises v, whose length must be a multiple of 32, into dst, of QuantizedBytes.
// Scales are rounded to f16, as in files.
func QuantizeBlocks(dst []byte, v []float32) Blocks {
	if !quantizeRowAsm(dst, v, Q8_0, cpu.Active()) {
		quantizeRow(dst, v, Q8_0)
	}
	return Blocks{dst, len(v) / block}
}

// Len is the number of blocks.
func (b Blocks) Len() int { return b.n }

// Block returns the int8 of block i and their f16 scale.
func (b Blocks) Block(i int) (q []byte, scale uint16) {
	x := b.row[i*xBlock:]
	return x[:block], num.ToF16(math.Float32frombits(binary.NativeEndian.Uint32(x[xScale:])))
}

// StoreLane stores the row as output lane of a panel of Q8_0.
func (b Blocks) StoreLane(panel []byte, lane int) {
	le := binary.LittleEndian
	for i := range b.n {
		q, scale := b.Block(i)
		w := panel[i*BlockBytes:][:BlockBytes]
		le.PutUint16(w[lane*2:], scale)
		for k := 0; k < block; k += 4 {
			le.PutUint32(w[2*Panel+k*Panel+lane*4:], le.Uint32(q[k:])^blockTypes[Q8_0].flip())
		}
	}
}

// LoadLane widens output lane of a panel of Q8_0 to f32, as many elements as dst has.
func LoadLane(dst []float32, panel []byte, lane int) {
	var last [block]float32
	for ; len(dst) > 0; panel = panel[BlockBytes:] {
		blockTypes[Q8_0].widen(last[:], panel[:BlockBytes], lane)
		dst = dst[copy(dst, last[:]):]
	}
}

// CopyLane copies output o of panel src to output i of panel dst, both of Q8_0.
func CopyLane(dst []byte, i int, src []byte, o int) { blockTypes[Q8_0].copyRow(dst, i, src, o) }

// PairLanes writes the int8 of a block of a panel of Q8_0 as [Panel/2][32][2]: the elements of two
// neighbouring outputs in turn.
func PairLanes(dst, block []byte) {
	le := binary.LittleEndian
	for at, i := 2*Panel, 0; at < len(block); at, i = at+4, i+1 {
		lane, element := i%Panel, i/Panel*4
		x := le.Uint32(block[at:]) ^ blockTypes[Q8_0].flip()
		pair := dst[lane/2*64+element*2+lane%2:]
		pair[0], pair[2] = byte(x), byte(x>>8)
		pair[4], pair[6] = byte(x>>16), byte(x>>24)
	}
}
