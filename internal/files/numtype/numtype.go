// Package numtype defines the number types of model files that package tensor has no constant for,
// as numbers that compare with a tensor.Type, and the contents of their blocks.
package numtype

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ggml's types. tensor.Type.Decodes lists those that grove can decode; the others can be named,
// sized and copied.
const (
	Q8_1    = 9
	Q2_K    = 10
	Q3_K    = 11
	Q8_K    = 15
	IQ2_XXS = 16
	IQ2_XS  = 17
	IQ3_XXS = 18
	IQ1_S   = 19
	IQ3_S   = 21
	IQ2_S   = 22
	IQ4_XS  = 23
	I8      = 24
	I16     = 25
	I32     = 26
	I64     = 27
	F64     = 28
	IQ1_M   = 29
	TQ1_0   = 34
	TQ2_0   = 35
	NVFP4   = 40
	Q1_0    = 41
	Q2_0    = 42
)

// Types that safetensors has and ggml does not. They never go into a GGUF file.
const (
	U8 = 1<<16 + iota
	U16
	U32
	U64
	Bool
	F8_E4M3
	F8_E5M2
	NF4 // bitsandbytes', with its scales in 8 bits
	FP4

	// Unknown is an encoding that this version of grove has no name for.
	Unknown = math.MaxUint32
)

// CountElements multiplies the dimensions of a shape. It refuses dimensions below 1 and products
// that overflow. A shape without dimensions has one element.
func CountElements(shape []int) (int, error) {
	n := 1
	for i, d := range shape {
		if d < 1 {
			return 0, fmt.Errorf("dimension %d of shape %v is below 1", i, shape)
		}
		if n > math.MaxInt/d {
			return 0, fmt.Errorf("the number of elements of shape %v overflows", shape)
		}
		n *= d
	}
	return n, nil
}

// IQ4Scale returns the scale of 32 elements in a block of IQ4_XS.
func IQ4Scale(src []byte, b int) int {
	return int(src[4+b/2]>>(4*(b%2))&15|byte(binary.LittleEndian.Uint16(src[2:])>>(2*b)&3)<<4) - 32
}
