// Package synth makes block heads of random numbers: they fit any target and agree with none, which is all that a law
// needs that holds whatever a head says.
package synth

import (
	"math/rand/v2"

	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/internal/synthetic"
	"github.com/grovellm/grove/model"
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

// Network makes the head that c describes. It may have its own embedding and output matrix; else it
// uses the target's.
func Network(c jet.Config, t tensor.Type, seed uint64, target *model.Model) (*jet.Network, error) {
	return jet.NewNetwork(c, weights(t, seed), &target.Network)
}

// Tensors are the weights of the head that Network makes of the same arguments, by llama.cpp's names.
func Tensors(c jet.Config, t tensor.Type, seed uint64) ([]tensor.Tensor, error) {
	w := weights(t, seed)
	_, err := jet.NewNetwork(c, w, &model.Network{})
	return w.Made, err
}

// weights are those of a head that may have an output and an embedding of its own.
func weights(t tensor.Type, seed uint64) *synthetic.Weights {
	return &synthetic.Weights{Type: t, Seed: seed, Extra: synthetic.Ends(seed, false)}
}
