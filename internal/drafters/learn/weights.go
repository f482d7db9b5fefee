// Weights passed between the copy that drafts and the one that learns.

package learn

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// kinds has the types of a drafting head's trained tensors, by name: each matrix's own if numbers can
// be encoded in it, and F32 for vectors and tables.
type kinds map[string]gemm.Type

func kindsOf(h Head) kinds {
	k := kinds{}
	h.Tensors().Weights(func(w headfile.Weight) {
		switch {
		case w.Fixed:
		case w.Matrix != nil:
			k[w.Name] = model.Encodable(w.Matrix.Type())
		default:
			k[w.Name] = gemm.F32
		}
	})
	return k
}

// trained has parameters as model.Weights: it makes them as NewNetwork and the like ask for them.
type trained struct {
	*autograd.Params
	kinds kinds
}

func (t trained) Has(name string) bool                         { _, ok := t.kinds[name]; return ok }
func (t trained) Vector(name string, n int) ([]float32, error) { return t.Params.Vector(name, n), nil }
func (t trained) Table(name string, rows, cols int) (nn.Table, error) {
	return t.Params.Matrix(name, rows, cols)
}

// packed has trained values as model.Weights to draft with: each matrix has its original type.
type packed struct {
	params map[string]*autograd.Param
	kinds  kinds
}

func (p packed) Has(name string) bool { _, ok := p.kinds[name]; return ok }

func (p packed) get(name string, shape ...int) (*autograd.Param, error) {
	q := p.params[name]
	if q == nil || !slices.Equal(q.Shape(), shape) {
		return nil, fmt.Errorf("tensor %s of shape %v is not one of the head's", name, shape)
	}
	return q, nil
}

func (p packed) Vector(name string, n int) ([]float32, error) {
	q, err := p.get(name, n)
	if err != nil {
		return nil, err
	}
	return slices.Clone(q.Data), nil
}

func (p packed) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	q, err := p.get(name, out, in)
	if err != nil {
		return nil, err
	}
	return pack(name, p.kinds[name], q.Mat())
}

func (p packed) Table(name string, rows, cols int) (nn.Table, error) {
	return p.Matrix(name, rows, cols)
}

// pack makes a matrix with a type.
func pack(name string, t gemm.Type, x nn.Mat) (*gemm.Matrix, error) {
	file, err := tensor.FromFloat32s(name, model.FileType(t), []int{x.Rows, x.Cols}, x.Data[:x.Rows*x.Cols])
	if err != nil {
		return nil, err
	}
	m, err := gemm.New(t, x.Rows, x.Cols)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", name, err)
	}
	m.PackPanels(file.Data, 0, m.Panels())
	return m, nil
}

// fill gives parameters the values of a head's weights.
func fill(params map[string]*autograd.Param, h Head) error {
	left := len(params)
	var err error
	h.Tensors().Weights(func(w headfile.Weight) {
		if w.Fixed {
			return
		}
		p := params[w.Name]
		if p == nil {
			err = fmt.Errorf("tensor %s is not one that the head is built of", w.Name)
			return
		}
		w.Each(func(i int, row []float32) { copy(p.Data[i*p.Cols:], row) })
		left--
	})
	if err == nil && left != 0 {
		err = fmt.Errorf("%d of the head's %d tensors are not listed", left, len(params))
	}
	return err
}

// Write writes a head as a GGUF file of its family: matrices in the types that it drafts with. A
// head opened from that file drafts the same, bit for bit.
func Write(path, name string, h Head) error {
	weights, err := Tensors(h)
	if err != nil {
		return err
	}
	_, _, tokens := h.Output()
	return headfile.WriteGGUF(path, name, h.Shape(), weights, tokens, nil, numtype.Unknown)
}

// Tensors returns all tensors of a head for a file: matrices in the types that the head drafts
// with, bit for bit.
func Tensors(h Head) (list []tensor.Tensor, err error) {
	h.Tensors().Weights(func(w headfile.Weight) {
		t, e := encode(&w)
		list, err = append(list, t), errors.Join(err, e)
	})
	return list, err
}

func encode(w *headfile.Weight) (t tensor.Tensor, err error) {
	m := w.Matrix
	if m == nil {
		m, _ = w.Table.(*gemm.Matrix)
	}
	switch {
	case w.Vector != nil:
		return tensor.FromFloat32s(w.Name, tensor.F32, []int{len(w.Vector)}, w.Vector)
	case m != nil:
		n := m.RowBytes()
		t = tensor.Tensor{Name: w.Name, Type: model.FileType(m.Type()), Shape: []int{m.Out(), m.In()}}
		t.Data = make([]byte, m.Out()*n)
		for i := range m.Out() {
			m.UnpackRow(t.Data[i*n:(i+1)*n], i)
		}
		return t, nil
	}
	// No product reads a table, so any type that holds its values will do.
	for _, kind := range []tensor.Type{tensor.Q8_0, tensor.BF16, tensor.F16, tensor.F32} {
		if t, err = encodeTable(w, kind); err == nil {
			break
		}
	}
	return t, err
}

// encodeTable encodes a table as a type. It returns an error if that changes a value.
func encodeTable(w *headfile.Weight, kind tensor.Type) (tensor.Tensor, error) {
	n, err := kind.Size(w.Cols)
	if err != nil {
		return tensor.Tensor{}, err
	}
	t := tensor.Tensor{Name: w.Name, Type: kind, Shape: []int{w.Rows, w.Cols}, Data: make([]byte, w.Rows*n)}
	row, back := make([]float32, w.Cols), make([]float32, w.Cols)
	for i := range w.Rows {
		w.Table.Row(row, i)
		err := tensor.Quantize(kind, row, t.Data[i*n:(i+1)*n])
		if err = errors.Join(err, t.DequantizeRows(back, i, i+1)); err != nil {
			return t, err
		}
		for k := range row {
			if math.Float32bits(row[k]) != math.Float32bits(back[k]) {
				return t, fmt.Errorf("tensor %s: row %d has %g, which %v does not hold", w.Name, i, row[k], kind)
			}
		}
	}
	return t, nil
}
