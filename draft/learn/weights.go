// Weights on their way between the copy that drafts and the one that learns.

package learn

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// kinds is how the tensors of a head are held to draft: the type of each matrix by name; vectors and tables are F32.
type kinds map[string]gemm.Type

func kindsOf(h Head) kinds {
	k := kinds{}
	h.Weights(func(w Weight) {
		k[w.Name] = gemm.F32
		if w.Matrix != nil {
			k[w.Name] = w.Matrix.Type()
		}
	})
	return k
}

// trained are parameters as model.Weights: NewNetwork and the like make them as they ask for them.
type trained struct {
	*nn.Params
	kinds kinds
}

func (t trained) Has(name string) bool                         { _, ok := t.kinds[name]; return ok }
func (t trained) Vector(name string, n int) ([]float32, error) { return t.Params.Vector(name, n), nil }
func (t trained) Table(name string, rows, cols int) (nn.Table, error) {
	return t.Params.Matrix(name, rows, cols)
}

// packed are trained values as model.Weights to draft with: each matrix of the type that it had.
type packed struct {
	params map[string]*nn.Param
	kinds  kinds
}

func (p packed) Has(name string) bool { _, ok := p.kinds[name]; return ok }

func (p packed) get(name string, shape ...int) (*nn.Param, error) {
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

// pack makes a matrix of a type.
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
func fill(params map[string]*nn.Param, h Head) error {
	left := len(params)
	var err error
	h.Weights(func(w Weight) {
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

// Keep is weights with a matrix beside them that is not trained.
func Keep(w model.Weights, name string, m *gemm.Matrix) model.Weights { return kept{w, name, m} }

type kept struct {
	model.Weights
	name   string
	matrix *gemm.Matrix
}

func (k kept) Has(name string) bool { return name == k.name || k.Weights.Has(name) }

func (k kept) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	if name == k.name {
		return k.matrix, nil
	}
	return k.Weights.Matrix(name, out, in)
}

// Matrix is a matrix as files have it.
func Matrix(name string, m *gemm.Matrix) (tensor.Tensor, error) {
	x := make([]float32, m.Out()*m.In())
	for i := range m.Out() {
		m.Row(x[i*m.In():(i+1)*m.In()], i)
	}
	return tensor.FromFloat32s(name, tensor.F32, []int{m.Out(), m.In()}, x)
}
