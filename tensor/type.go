package tensor

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Type is how numbers are encoded. The values below 1<<16 are ggml's, as GGUF files store them.
type Type uint32

// ggml's types. Those grove reads into numbers are listed by Decodes; the rest can be named, sized and passed on.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// Types that safetensors has and ggml has not. They never go into a GGUF file.
const (
	U8 Type = 1<<16 + iota
	U16
	U32
	U64
	Bool
	F8_E4M3
	F8_E5M2

	// Unknown is an encoding that this version of grove has no name for.
	Unknown Type = math.MaxUint32
)

type layout struct {
	name            string
	elements, bytes int
	decodes         bool
}

// layouts is the whole knowledge about block sizes. K types hold 256 elements a block, most others 32.
var layouts = map[Type]layout{
	F32:     {"F32", 1, 4, true},
	F16:     {"F16", 1, 2, true},
	BF16:    {"BF16", 1, 2, true},
	Q4_0:    {"Q4_0", 32, 2 + 16, true},
	Q4_1:    {"Q4_1", 32, 2 + 2 + 16, true},
	Q5_0:    {"Q5_0", 32, 2 + 4 + 16, true},
	Q5_1:    {"Q5_1", 32, 2 + 2 + 4 + 16, true},
	Q8_0:    {"Q8_0", 32, 2 + 32, true},
	Q8_1:    {"Q8_1", 32, 2 + 2 + 32, false},
	Q2_K:    {"Q2_K", 256, 16 + 64 + 2 + 2, true},
	Q3_K:    {"Q3_K", 256, 32 + 64 + 12 + 2, true},
	Q4_K:    {"Q4_K", 256, 2 + 2 + 12 + 128, true},
	Q5_K:    {"Q5_K", 256, 2 + 2 + 12 + 32 + 128, true},
	Q6_K:    {"Q6_K", 256, 128 + 64 + 16 + 2, true},
	Q8_K:    {"Q8_K", 256, 4 + 256 + 32, false},
	IQ2_XXS: {"IQ2_XXS", 256, 66, true},
	IQ2_XS:  {"IQ2_XS", 256, 74, true},
	IQ3_XXS: {"IQ3_XXS", 256, 98, true},
	IQ1_S:   {"IQ1_S", 256, 50, true},
	IQ4_NL:  {"IQ4_NL", 32, 18, true},
	IQ3_S:   {"IQ3_S", 256, 110, true},
	IQ2_S:   {"IQ2_S", 256, 82, true},
	IQ4_XS:  {"IQ4_XS", 256, 136, true},
	IQ1_M:   {"IQ1_M", 256, 56, true},
	TQ1_0:   {"TQ1_0", 256, 54, true},
	TQ2_0:   {"TQ2_0", 256, 66, true},
	MXFP4:   {"MXFP4", 32, 17, true},
	NVFP4:   {"NVFP4", 64, 36, false},
	Q1_0:    {"Q1_0", 128, 18, true},
	Q2_0:    {"Q2_0", 64, 18, true},
	I8:      {"I8", 1, 1, false},
	I16:     {"I16", 1, 2, false},
	I32:     {"I32", 1, 4, false},
	I64:     {"I64", 1, 8, false},
	F64:     {"F64", 1, 8, false},
	U8:      {"U8", 1, 1, false},
	U16:     {"U16", 1, 2, false},
	U32:     {"U32", 1, 4, false},
	U64:     {"U64", 1, 8, false},
	Bool:    {"BOOL", 1, 1, false},
	F8_E4M3: {"F8_E4M3", 1, 1, false},
	F8_E5M2: {"F8_E5M2", 1, 1, false},
}

// Known reports whether the type's layout is known, so that it can be sized.
func (t Type) Known() bool { _, ok := layouts[t]; return ok }

// Decodes reports whether Dequantize reads the type.
func (t Type) Decodes() bool { return layouts[t].decodes }

// Decoded lists the types that Dequantize reads, in the order of their numbers.
func Decoded() []Type {
	var list []Type
	for t, l := range layouts {
		if l.decodes {
			list = append(list, t)
		}
	}
	slices.Sort(list)
	return list
}

// Block returns how many elements are encoded together, and in how many bytes; 0, 0 for an unknown type.
func (t Type) Block() (elements, bytes int) {
	l := layouts[t]
	return l.elements, l.bytes
}

// String is the type's name as papers and tools write it, "type 37" where it has none.
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	if t == Unknown {
		return "an unknown type"
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// ParseType finds a type by its name, in either case.
func ParseType(name string) (Type, error) {
	for t, l := range layouts {
		if strings.EqualFold(l.name, name) {
			return t, nil
		}
	}
	return Unknown, fmt.Errorf("tensor: no type is named %q: use one of F32, BF16, F16, Q8_0, or another ggml type", clip(name))
}

// Size returns the bytes that n elements take. It fails for an unknown type, a part of a block, or an overflow.
func (t Type) Size(n int) (int, error) {
	e, b := t.Block()
	switch {
	case e == 0:
		return 0, fmt.Errorf("tensor: the size of %v is not known: convert the file to a type that grove reads (%s)", t, decodable)
	case n < 0:
		return 0, fmt.Errorf("tensor: a size of %d elements is negative", n)
	case n%e != 0:
		return 0, fmt.Errorf("tensor: %d elements are not whole blocks of %v, which hold %d", n, t, e)
	case n/e > math.MaxInt/b:
		return 0, fmt.Errorf("tensor: %d elements of %v overflow", n, t)
	}
	return n / e * b, nil
}

// decodable names, in errors, what Dequantize reads.
const decodable = "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ1 to IQ4 of all kinds, " +
	"TQ1_0, TQ2_0, Q1_0, Q2_0, MXFP4"

// Elements multiplies the dimensions, refusing those below 1 and products that overflow. No dimension is one element.
func Elements(shape []int) (int, error) {
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
