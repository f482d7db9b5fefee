// The types of files and those of products.

package model

import (
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/recode"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/tensor"
)

// productTypes maps the types of tensors to those in which they are multiplied: the file's blocks,
// packed, possibly after recode.Append.
var productTypes = map[tensor.Type]gemm.Type{
	tensor.F32:    gemm.F32,
	tensor.F16:    gemm.F16,
	tensor.BF16:   gemm.BF16,
	tensor.Q8_0:   gemm.Q8_0,
	tensor.Q4_0:   gemm.Q4_0,
	tensor.Q4_1:   gemm.Q4_1,
	tensor.Q5_0:   gemm.Q5_0,
	tensor.Q5_1:   gemm.Q5_1,
	tensor.IQ4_NL: gemm.IQ4_NL,
	tensor.MXFP4:  gemm.MXFP4,
	tensor.Q4_K:   gemm.Q4_K,
	tensor.Q5_K:   gemm.Q5_K,
	tensor.Q6_K:   gemm.Q6_K,
	numtype.Q2_K:  gemm.Q2_K,
	numtype.Q3_K:  gemm.Q3_K,

	numtype.IQ1_S:   gemm.IQ1_S,
	numtype.IQ1_M:   gemm.IQ1_M,
	numtype.IQ2_XXS: gemm.IQ2_XXS,
	numtype.IQ2_XS:  gemm.IQ2_XS,
	numtype.IQ2_S:   gemm.IQ2_S,
	numtype.IQ3_XXS: gemm.IQ3_XXS,
	numtype.IQ3_S:   gemm.IQ3_S,
	numtype.TQ1_0:   gemm.TQ1_0,
	numtype.TQ2_0:   gemm.TQ2_0,
	numtype.Q1_0:    gemm.Q1_0,
	numtype.Q2_0:    gemm.Q2_0,
}

// ProductType returns the type in which rows of cols weights of one type are multiplied.
func ProductType(t tensor.Type, cols int) gemm.Type { return productTypes[recode.RunsAs(t, cols)] }

// Encodable returns t, or Q8_0 if numbers cannot be encoded as t.
func Encodable(t gemm.Type) gemm.Type {
	if recode.CheckWritable(FileType(t)) == nil {
		return t
	}
	return gemm.Q8_0
}

// FileType returns the type in files from whose bytes matrices of a type are packed.
func FileType(t gemm.Type) tensor.Type {
	for file, product := range productTypes {
		if product == t {
			return file
		}
	}
	return numtype.Unknown
}
