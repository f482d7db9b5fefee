package tensor

import (
	"fmt"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"math"
	"strings"
)

// Type is how numbers are encoded. The values below 1<<16 are ggml's, as GGUF files store them.
type Type uint32

// The types that Quantize writes. Others have only names, which ParseType takes.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	IQ4_NL Type = 20
	BF16   Type = 30
	MXFP4  Type = 39
)

type layout struct {
	name            string
	elements, bytes int
	decodes         bool
}

// layouts is the whole knowledge about block sizes. K types hold 256 elements a block, most others 32.
var layouts = map[Type]layout{
	F32:             {"F32", 1, 4, true},
	F16:             {"F16", 1, 2, true},
	BF16:            {"BF16", 1, 2, true},
	Q4_0:            {"Q4_0", 32, 2 + 16, true},
	Q4_1:            {"Q4_1", 32, 2 + 2 + 16, true},
	Q5_0:            {"Q5_0", 32, 2 + 4 + 16, true},
	Q5_1:            {"Q5_1", 32, 2 + 2 + 4 + 16, true},
	Q8_0:            {"Q8_0", 32, 2 + 32, true},
	numtype.Q8_1:    {"Q8_1", 32, 2 + 2 + 32, false},
	numtype.Q2_K:    {"Q2_K", 256, 16 + 64 + 2 + 2, true},
	numtype.Q3_K:    {"Q3_K", 256, 32 + 64 + 12 + 2, true},
	Q4_K:            {"Q4_K", 256, 2 + 2 + 12 + 128, true},
	Q5_K:            {"Q5_K", 256, 2 + 2 + 12 + 32 + 128, true},
	Q6_K:            {"Q6_K", 256, 128 + 64 + 16 + 2, true},
	numtype.Q8_K:    {"Q8_K", 256, 4 + 256 + 32, false},
	numtype.IQ2_XXS: {"IQ2_XXS", 256, 66, true},
	numtype.IQ2_XS:  {"IQ2_XS", 256, 74, true},
	numtype.IQ3_XXS: {"IQ3_XXS", 256, 98, true},
	numtype.IQ1_S:   {"IQ1_S", 256, 50, true},
	IQ4_NL:          {"IQ4_NL", 32, 18, true},
	numtype.IQ3_S:   {"IQ3_S", 256, 110, true},
	numtype.IQ2_S:   {"IQ2_S", 256, 82, true},
	numtype.IQ4_XS:  {"IQ4_XS", 256, 136, true},
	numtype.IQ1_M:   {"IQ1_M", 256, 56, true},
	numtype.TQ1_0:   {"TQ1_0", 256, 54, true},
	numtype.TQ2_0:   {"TQ2_0", 256, 66, true},
	MXFP4:           {"MXFP4", 32, 17, true},
	numtype.NVFP4:   {"NVFP4", 64, 36, false},
	numtype.Q1_0:    {"Q1_0", 128, 18, true},
	numtype.Q2_0:    {"Q2_0", 64, 18, true},
	numtype.I8:      {"I8", 1, 1, false},
	numtype.I16:     {"I16", 1, 2, false},
	numtype.I32:     {"I32", 1, 4, false},
	numtype.I64:     {"I64", 1, 8, false},
	numtype.F64:     {"F64", 1, 8, false},
	numtype.U8:      {"U8", 1, 1, false},
	numtype.U16:     {"U16", 1, 2, false},
	numtype.U32:     {"U32", 1, 4, false},
	numtype.U64:     {"U64", 1, 8, false},
	numtype.Bool:    {"BOOL", 1, 1, false},
	numtype.F8_E4M3: {"F8_E4M3", 1, 1, false},
	numtype.F8_E5M2: {"F8_E5M2", 1, 1, false},
	numtype.NF4:     {"NF4", 64, 32 + 1, false},
	numtype.FP4:     {"FP4", 64, 32 + 1, false},
}

// Decodes reports whether Dequantize reads the type.
func (t Type) Decodes() bool { return layouts[t].decodes }

// Block returns how many elements are encoded together, and in how many bytes; 0, 0 for an unknown type.
func (t Type) Block() (elements, bytes int) {
	l := layouts[t]
	return l.elements, l.bytes
}

// String is the type's usual name, such as Q4_K, or "type 37" if it has none.
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	if t == numtype.Unknown {
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
	return numtype.Unknown, fmt.Errorf("tensor: no type is named %q: use one of F32, BF16, F16, Q8_0, or another ggml type", fileerr.Clip(name))
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
