package codebook

import (
	_ "embed"
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// The codebooks are part of the format. grids.py generated the file and documents its layout.
//
//go:embed grids.bin
var grids []byte

// The codebooks, as bytes of integer + Zero. IQ1's integers are those of its codebook times 8.
var (
	grid2XXS [256]uint64
	grid2XS  [512]uint64
	grid2S   [1024]uint64
	grid1    [2048]uint64
	grid3XXS [256]uint32
	grid3S   [512]uint32
)

// eightSigns and sevenSigns are the masks of the negative elements, for negate; seven bits are completed
// by an eighth that makes the number of ones even. pairs has four elements v + 1 of 2 bits each, as
// bytes. shifts is what IQ1 adds to eight elements, by four bits of which the highest is the sign.
var (
	eightSigns [256]uint64
	sevenSigns [128]uint64
	pairs      [256]uint64
	shifts     [16]uint64
)

// Tables returns tables for kernels that read elements: the entries of a type's codebook (four bytes each for
// IQ3_XXS and IQ3_S, eight for the others), and, by the bits of the signs, masks of the negative elements or what
// is added to all. The entries of Q1_0 are the masks, those of Q2_0 four elements each. Other types have none.
func (t Type) Tables() (entries, signs unsafe.Pointer) {
	switch t {
	case IQ1_S, IQ1_M:
		return unsafe.Pointer(&grid1), unsafe.Pointer(&shifts)
	case IQ2_XXS:
		return unsafe.Pointer(&grid2XXS), unsafe.Pointer(&sevenSigns)
	case IQ2_XS:
		return unsafe.Pointer(&grid2XS), unsafe.Pointer(&sevenSigns)
	case IQ2_S:
		return unsafe.Pointer(&grid2S), unsafe.Pointer(&eightSigns)
	case IQ3_XXS:
		return unsafe.Pointer(&grid3XXS), unsafe.Pointer(&sevenSigns)
	case IQ3_S:
		return unsafe.Pointer(&grid3S), unsafe.Pointer(&eightSigns)
	case Q1_0:
		return unsafe.Pointer(&eightSigns), nil
	case Q2_0:
		return unsafe.Pointer(&pairs), nil
	}
	return nil, nil
}

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
	for i := range shifts {
		shifts[i] = ones
		if i >= 8 {
			shifts[i] = -shifts[i]
		}
	}
	for i := range sevenSigns {
		sevenSigns[i] = eightSigns[i|bits.OnesCount(uint(i))%2<<7]
	}
}
