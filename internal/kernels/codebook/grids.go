package codebook

import (
	_ "embed"
	"encoding/binary"
	"math/bits"
)

// The codebooks are facts of the format. grids.py wrote them, and says how they lie in the file.
//
//go:embed grids.bin
var grids []byte

// The codebooks, in bytes of integer + Zero. IQ1's integers are those of its own codebook times 8.
var (
	grid2XXS [256]uint64
	grid2XS  [512]uint64
	grid2S   [1024]uint64
	grid1    [2048]uint64
	grid3XXS [256]uint32
	grid3S   [512]uint32
)

// Masks of the elements that are negative, for negate: of eight bits, and of seven, to which the eighth makes an even
// number of ones. And 2 bits of four elements, v + 1, as bytes.
var (
	eightSigns [256]uint64
	sevenSigns [128]uint64
	pairs      [256]uint64
)

func init() {
	rest := grids
	entry := func(elements int, levels ...int) (q uint64) {
		numbers := binary.LittleEndian.Uint16(rest)
		rest = rest[2:]
		width := 16 / elements
		for e := range elements {
			q |= uint64(levels[numbers>>(e*width)&(1<<width-1)]+Zero) << (8 * e)
		}
		return q
	}
	for _, grid := range [][]uint64{grid2XXS[:], grid2XS[:], grid2S[:]} {
		for i := range grid {
			grid[i] = entry(8, 8, 25, 43)
		}
	}
	for i := range grid1 {
		grid1[i] = entry(8, -8, 0, 8)
	}
	for i := range grid3XXS {
		grid3XXS[i] = uint32(entry(4, 4, 12, 20, 28, 36, 44, 52, 62))
	}
	for i := range grid3S {
		grid3S[i] = uint32(entry(4, 1, 3, 5, 7, 9, 11, 13, 15))
	}
	for i := range eightSigns {
		for e := range 8 {
			eightSigns[i] |= uint64(i>>e&1*0x7f) << (8 * e)
		}
		for e := range 4 {
			pairs[i] |= uint64(i>>(2*e)&3+Zero-1) << (8 * e)
		}
	}
	for i := range sevenSigns {
		sevenSigns[i] = eightSigns[i|bits.OnesCount(uint(i))%2<<7]
	}
}
