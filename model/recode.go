// The types of files and those of products.

package model

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
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

// recoded is a tensor in the type whose bytes are packed: the same numbers.
func recoded(t tensor.Tensor, pool *par.Pool) (tensor.Tensor, error) {
	to := packings[t.Type].from
	if to == t.Type {
		return t, nil
	}
	size, err := to.Size(t.Cols())
	if err != nil {
		return t, err
	}
	w := &recodeJob{t: t, to: to, size: size, out: make([]byte, size*t.Rows()), errs: make([]error, t.Rows())}
	pool.Run(t.Rows(), w)
	t.Type, t.Data = to, w.out
	return t, errors.Join(w.errs...)
}

type recodeJob struct {
	t    tensor.Tensor
	to   tensor.Type
	size int // of a row of it
	out  []byte
	errs []error
}

func (w *recodeJob) Do(_, i int) {
	out := w.out[i*w.size:][:w.size]
	if w.to == tensor.Q8_0 {
		n := w.t.RowBytes()
		w.errs[i] = tensor.ToQ8_0(w.t.Type, w.t.Data[i*n:(i+1)*n], out)
		return
	}
	row := make([]float32, w.t.Cols())
	w.errs[i] = w.t.DequantizeRows(row, i, i+1)
	for j, x := range row {
		binary.LittleEndian.PutUint32(out[4*j:], math.Float32bits(x))
	}
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
