package convert

import (
	"fmt"
	"io"
	"slices"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// transposed is experts' matrices as in a folder, where rows are inputs. If two halves share a matrix,
// their outputs alternate, or lie side by side.
type transposed struct {
	tensor.Tensor // the folder's
	part          model.Part
	halves        []tensor.Tensor
}

// newTransposed returns the transpose of a part's tensor, and of the other half's, if it has one.
func newTransposed(e model.Part, t tensor.Tensor, others []tensor.Tensor) (*transposed, error) {
	x := &transposed{part: e, halves: append([]tensor.Tensor{t}, others...)}
	dimensions := 3
	if e.Experts == 0 { // one matrix
		dimensions = 2
	}
	for _, t := range x.halves {
		if want := []int{e.Experts, e.Rows, e.Cols}[3-dimensions:]; !slices.Equal(t.Shape, want) {
			return nil, fmt.Errorf("tensor %s has shape %v: want %v for this model", fileerr.Quote(t.Name), t.Shape, want)
		}
	}
	x.Tensor = tensor.Tensor{Name: e.InFolder(".weight"), Type: t.Type,
		Shape: []int{e.Experts, e.Cols, e.Rows * len(x.halves)}[3-dimensions:]}
	return x, nil
}

// write converts the matrices, one expert's at a time, and writes them in order.
func (x *transposed) write(s *stream, w io.Writer) error {
	rows := x.part.Rows
	cols := x.part.Cols
	n := len(x.halves)
	half, all := make([]float32, rows*cols), make([]float32, rows*cols*n)
	for expert := range max(x.part.Experts, 1) {
		for k, t := range x.halves {
			if err := t.DequantizeRows(half, expert*rows, (expert+1)*rows); err != nil {
				return err
			}
			first, step := k, n
			if x.part.Sides {
				first, step = k*rows, 1
			}
			for i, v := range half {
				all[i%cols*rows*n+first+i/cols*step] = v
			}
		}
		t, err := tensor.FromFloat32s(x.Name, tensor.F32, []int{cols, rows * n}, all)
		if err != nil {
			return err
		}
		if err := (&stream{s.ctx, t, s.to, nil, s.count}).write(w); err != nil {
			return err
		}
	}
	return nil
}
