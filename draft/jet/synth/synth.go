// Package synth makes block heads of random numbers: they fit any target and agree with none, which is all that a law
// needs that holds whatever a head says.
package synth

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// Config draws the shape of a small head for a target, its weights to be of type t.
func Config(rng *rand.Rand, target model.Config, t tensor.Type) jet.Config {
	unit, dims := 1, []int{8, 18, 32, 48}
	if t == tensor.Q8_0 {
		unit, dims = 32, []int{32, 64} // rows are whole blocks
	}
	c := jet.Config{
		Config: model.Config{
			Arch: "qwen3", Vocab: target.Vocab, Hidden: target.Hidden, Layers: 1 + rng.IntN(3), KVHeads: 1 + rng.IntN(2),
			HeadDim: dims[rng.IntN(len(dims))], FFN: unit * (1 + rng.IntN(96/unit)), Context: target.Context, NormEps: 1e-6,
		},
		Block: 2 + rng.IntN(15), Causal: rng.IntN(2) == 0, Mask: rng.Int32N(int32(target.Vocab)),
		TargetLayers: target.Layers * rng.IntN(2),
	}
	c.Heads = c.KVHeads * (1 + rng.IntN(3))
	c.Rope = model.RopeConfig{Base: 1e4, Dims: c.HeadDim, Scale: 1}
	for range 1 + rng.IntN(4) {
		c.Taps = append(c.Taps, rng.IntN(target.Layers+1))
	}
	return c
}

// Network makes the head that c describes, for a target whose embedding and output head it uses.
func Network(c jet.Config, t tensor.Type, seed uint64, target *model.Model) (*jet.Network, error) {
	return jet.NewNetwork(c, &weights{t: t, seed: seed}, target.Embed, target.Head)
}

// Tensors are the weights of the head that Network makes of the same arguments, by llama.cpp's names.
func Tensors(c jet.Config, t tensor.Type, seed uint64) ([]tensor.Tensor, error) {
	w := &weights{t: t, seed: seed}
	_, err := jet.NewNetwork(c, w, nil, nn.Linear{})
	return w.made, err
}

// weights makes tensors as they are asked for: the numbers of each follow from the seed and its name.
type weights struct {
	t    tensor.Type
	seed uint64
	made []tensor.Tensor
}

func (w *weights) Has(string) bool { return false } // no biases

// numbers are normal, with a mean and a standard deviation.
func (w *weights) numbers(name string, n int, mean, std float64) []float32 {
	h := fnv.New64a()
	h.Write([]byte(name)) // which cannot fail
	rng := rand.New(rand.NewPCG(w.seed, h.Sum64()))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(mean + std*rng.NormFloat64())
	}
	return x
}

func (w *weights) keep(t tensor.Tensor, err error) (tensor.Tensor, error) {
	if err == nil {
		w.made = append(w.made, t)
	}
	return t, err
}

// Matrix keeps the size of what it multiplies.
func (w *weights) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	x := w.numbers(name, out*in, 0, 1/math.Sqrt(float64(in)))
	t, err := w.keep(tensor.FromFloat32s(name, w.t, []int{out, in}, x))
	if err != nil {
		return nil, err
	}
	m, err := gemm.New(packed[w.t], out, in)
	if err != nil {
		return nil, err
	}
	m.PackPanels(t.Data, 0, m.Panels())
	return m, nil
}

// packed is the type that a file's type is multiplied in.
var packed = map[tensor.Type]gemm.Type{tensor.F32: gemm.F32, tensor.F16: gemm.F16, tensor.BF16: gemm.BF16, tensor.Q8_0: gemm.Q8_0}

func (w *weights) Vector(name string, n int) ([]float32, error) {
	x := w.numbers(name, n, 1, 0.2)
	_, err := w.keep(tensor.FromFloat32s(name, tensor.F32, []int{n}, x))
	return x, err
}

// Table is asked for where a head has an embedding of its own.
func (w *weights) Table(name string, rows, cols int) (nn.Table, error) {
	return w.Matrix(name, rows, cols)
}
