// The types of files and those of products.

package model

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/tensor"
)

// packings are the types that tensors are multiplied in. Those without kernels of their own lose nothing: Q4_0 and Q5_0 become
// the Q8_0 of the same scales, Q4_1 and Q5_1, which have minimums, are widened to f32.
var packings = map[tensor.Type]struct {
	to   gemm.Type
	from tensor.Type // whose bytes are packed
}{
	tensor.F32:  {gemm.F32, tensor.F32},
	tensor.F16:  {gemm.F16, tensor.F16},
	tensor.BF16: {gemm.BF16, tensor.BF16},
	tensor.Q8_0: {gemm.Q8_0, tensor.Q8_0},
	tensor.Q4_K: {gemm.Q4_K, tensor.Q4_K},
	tensor.Q5_K: {gemm.Q5_K, tensor.Q5_K},
	tensor.Q6_K: {gemm.Q6_K, tensor.Q6_K},
	tensor.Q4_0: {gemm.Q8_0, tensor.Q8_0},
	tensor.Q5_0: {gemm.Q8_0, tensor.Q8_0},
	tensor.Q4_1: {gemm.F32, tensor.F32},
	tensor.Q5_1: {gemm.F32, tensor.F32},
}

// recodeBuffers keep the bytes of a file that are being recoded.
var recodeBuffers = sync.Pool{New: func() any { return new([]byte) }}

// recoded is a tensor in the type whose bytes are packed: the same numbers, recoded as they are
// read.
func recoded(t tensor.Tensor) tensor.Tensor {
	from := t
	t.Type = packings[from.Type].from
	if t.Type == from.Type {
		return t
	}
	t.Data, t.Reader = nil, func(dst []byte, r0, r1 int) error {
		buf := recodeBuffers.Get().(*[]byte)
		defer recodeBuffers.Put(buf)
		size := from.RowBytes()
		if n := (r1 - r0) * size; cap(*buf) < n {
			*buf = make([]byte, n)
		} else {
			*buf = (*buf)[:n]
		}
		if err := from.ReadRows(*buf, r0, r1); err != nil {
			return err
		}
		if t.Type == tensor.Q8_0 {
			return tensor.ToQ8_0(from.Type, *buf, dst)
		}
		row := make([]float32, from.Cols())
		for i := range r1 - r0 {
			if err := tensor.Dequantize(from.Type, (*buf)[i*size:(i+1)*size], row); err != nil {
				return err
			}
			for j, x := range row {
				binary.LittleEndian.PutUint32(dst[4*(i*len(row)+j):], math.Float32bits(x))
			}
		}
		return nil
	}
	return t
}

// ProductType is the type that tensors of one type are multiplied in.
func ProductType(t tensor.Type) gemm.Type { return packings[t].to }

// FileType is the type of files whose bytes matrices of a type are packed from.
func FileType(t gemm.Type) tensor.Type {
	for file, p := range packings {
		if p.to == t && p.from == file {
			return file
		}
	}
	return tensor.Unknown
}
