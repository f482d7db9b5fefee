// Package synthetic generates random weights for the heads that tests and checks run.
package synthetic

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// Weights generates tensors on request (model.Weights). The numbers of each follow from the seed and its name.
type Weights struct {
	Type  tensor.Type // of matrices
	Seed  uint64
	Extra []string        // names of the optional tensors that exist
	Made  []tensor.Tensor // in the order requested

	// Repeat says that a tensor's numbers repeat after 65,536, for weights that are only timed.
	Repeat bool
}

func (w *Weights) Has(name string) bool { return slices.Contains(w.Extra, name) }

// numbers returns normally distributed numbers with a mean and a standard deviation.
func (w *Weights) numbers(name string, n int, mean, std float64) []float32 {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	rng := rand.New(rand.NewPCG(w.Seed, h.Sum64()))
	x := make([]float32, n)
	drawn := n
	if w.Repeat {
		drawn = min(n, 1<<16)
	}
	for i := range drawn {
		x[i] = float32(mean + std*rng.NormFloat64())
	}
	for i := drawn; i < n; i += drawn {
		copy(x[i:], x[:drawn])
	}
	return x
}

func (w *Weights) keep(t tensor.Tensor, err error) (tensor.Tensor, error) {
	if err == nil {
		w.Made = append(w.Made, t)
	}
	return t, err
}

// Matrix draws a matrix whose products have about the same size as what it multiplies.
func (w *Weights) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	x := w.numbers(name, out*in, 0, 1/math.Sqrt(float64(in)))
	kind := w.Type
	if block, _ := kind.Block(); in%block != 0 {
		kind = tensor.F32
	}
	t, err := w.keep(tensor.FromFloat32s(name, kind, []int{out, in}, x))
	if err != nil {
		return nil, err
	}
	m, err := gemm.New(model.ProductType(kind, in), out, in)
	if err != nil {
		return nil, err
	}
	m.PackPanels(t.Data, 0, m.Panels())
	return m, nil
}

func (w *Weights) Vector(name string, n int) ([]float32, error) {
	x := w.numbers(name, n, 1, 0.2)
	_, err := w.keep(tensor.FromFloat32s(name, tensor.F32, []int{n}, x))
	return x, err
}

// Order draws a permutation of n numbers.
func (w *Weights) Order(name string, n int) ([]float32, error) {
	x := make([]float32, n)
	for i, v := range rand.New(rand.NewPCG(w.Seed, 2)).Perm(n) {
		x[i] = float32(v)
	}
	_, err := w.keep(tensor.FromFloat32s(name, tensor.F32, []int{n}, x))
	return x, err
}

// Table draws a matrix whose rows are looked up.
func (w *Weights) Table(name string, rows, cols int) (nn.Table, error) {
	return w.Matrix(name, rows, cols)
}
