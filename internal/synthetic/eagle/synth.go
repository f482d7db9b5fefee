// Package synth makes EAGLE heads of random numbers: they fit any target and agree with none, which is all that a law needs
// that holds whatever a head says.
package synth

import (
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/internal/synthetic"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// Config draws the shape of a small head of a version for a target, its weights to be of type t.
func Config(rng *rand.Rand, version int, target model.Config, t tensor.Type) eagle.Config {
	unit, dims := 1, []int{8, 18, 32, 48}
	if t == tensor.Q8_0 {
		unit, dims = 32, []int{32, 64} // rows are whole blocks
	}
	c := eagle.Config{
		Config: model.Config{
			Arch: []string{"llama", "qwen3"}[rng.IntN(2)], Vocab: target.Vocab, Hidden: target.Hidden, Layers: 1 + rng.IntN(4)/3, KVHeads: 1 + rng.IntN(2),
			HeadDim: dims[rng.IntN(len(dims))], FFN: unit * (1 + rng.IntN(96/unit)), Context: target.Context, NormEps: 1e-6,
		},
		Version: version, Taps: []int{target.Layers}, DraftVocab: target.Vocab,
		TargetLayers: target.Layers * rng.IntN(2),
	}
	c.Heads = c.KVHeads * (1 + rng.IntN(3))
	c.Rope = model.RopeConfig{Base: 1e4, Dims: c.HeadDim, Scale: 1}
	if version == 2 {
		return c
	}
	c.Taps = c.Taps[:0]
	for range 1 + rng.IntN(4) {
		c.Taps = append(c.Taps, rng.IntN(target.Layers+1))
	}
	if rng.IntN(2) == 0 {
		c.DraftVocab = 1 + rng.IntN(target.Vocab)
	}
	variant := func() bool { return rng.IntN(4) == 0 }
	c.NormBeforeResidual, c.NormBeforeFC, c.FCNorm, c.NormOutput = variant(), variant(), variant(), variant()
	return c
}

// Tokens draws a draft vocabulary, nil where it is the whole one.
func Tokens(c eagle.Config, seed uint64) []int32 {
	if c.DraftVocab == c.Vocab {
		return nil
	}
	var tokens []int32
	in := map[int]bool{}
	for _, t := range rand.New(rand.NewPCG(seed, 1)).Perm(c.Vocab)[:c.DraftVocab] {
		in[t] = true
	}
	for t := range c.Vocab {
		if in[t] {
			tokens = append(tokens, int32(t))
		}
	}
	return tokens
}

// Network makes the head that c describes, for a target of which it uses what it has not of its own.
func Network(c eagle.Config, t tensor.Type, seed uint64, target *model.Network) (*eagle.Network, error) {
	return eagle.NewNetwork(c, weights(c, t, seed), Tokens(c, seed), target)
}

// Tensors are the weights of the head that Network makes of the same arguments, by llama.cpp's names.
func Tensors(c eagle.Config, t tensor.Type, seed uint64) ([]tensor.Tensor, error) {
	w := weights(c, t, seed)
	_, err := eagle.NewNetwork(c, w, Tokens(c, seed), &model.Network{})
	return w.Made, err
}

// weights are those of a head that may have an output and an embedding of its own.
func weights(c eagle.Config, t tensor.Type, seed uint64) *synthetic.Weights {
	w := &synthetic.Weights{Type: t, Seed: seed, Extra: synthetic.Ends(seed, c.DraftVocab < c.Vocab)}
	if slices.Contains(w.Extra, "output.weight") && seed%4 == 3 {
		w.Extra = append(w.Extra, "output.bias")
	}
	if c.Version == 2 && seed%2 == 0 {
		w.Extra = append(w.Extra, "fc.bias")
	}
	return w
}
