// Package synth makes SpecBlock heads of random numbers: they fit any target and agree with none, which is all that a law
// needs that holds whatever a head says.
package synth

import (
	"math/rand/v2"

	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/internal/synthetic"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// Config draws the shape of a small head for a target, its weights to be of type t.
func Config(rng *rand.Rand, target model.Config, t tensor.Type) specblock.Config {
	unit, dims := 1, []int{8, 18, 32, 48}
	if t == tensor.Q8_0 {
		unit, dims = 32, []int{32, 64} // rows are whole blocks
	}
	c := specblock.Config{
		Config: model.Config{
			Arch: []string{"llama", "qwen3"}[rng.IntN(2)], Vocab: target.Vocab, Hidden: target.Hidden, Layers: 1 + rng.IntN(3),
			KVHeads: 1 + rng.IntN(2), HeadDim: dims[rng.IntN(len(dims))], FFN: unit * (1 + rng.IntN(96/unit)), Context: target.Context, NormEps: 1e-6,
		},
		Block: 1 + rng.IntN(6), RankWidth: unit * (1 + rng.IntN(40/unit)), Shift: rng.IntN(4) > 0, Broadcast: rng.IntN(4) > 0,
		SamePosition: rng.IntN(3) == 0, RankNormed: rng.IntN(3) == 0, TargetLayers: target.Layers * rng.IntN(2),
	}
	if rng.IntN(6) == 0 {
		c.RankWidth = 0
	}
	if rng.IntN(3) == 0 {
		c.DraftVocab = 1 + rng.IntN(target.Vocab)
	}
	c.Heads = c.KVHeads * (1 + rng.IntN(3))
	c.Rope = model.RopeConfig{Base: 1e4, Dims: c.HeadDim, Scale: 1}
	for range 1 + rng.IntN(4) {
		c.Taps = append(c.Taps, rng.IntN(target.Layers+1))
	}
	if rng.IntN(2) == 0 {
		for b := range c.RankOffset {
			c.RankOffset[b] = float32(rng.NormFloat64())
		}
	}
	return c
}

// Network makes the head that c describes. It may have its own embedding and output matrix; else it
// uses the target's.
func Network(c specblock.Config, t tensor.Type, seed uint64, target *model.Model) (*specblock.Network, error) {
	return specblock.NewNetwork(c, weights(c, t, seed), Tokens(c, seed), &target.Network)
}

// weights are those of a head that may have an output and an embedding of its own.
func weights(c specblock.Config, t tensor.Type, seed uint64) *synthetic.Weights {
	return &synthetic.Weights{Type: t, Seed: seed, Extra: synthetic.Ends(seed, c.DraftVocab > 0)}
}

// Tokens draws those of the target that the rows of a head's own output stand for; nil: it has none.
func Tokens(c specblock.Config, seed uint64) []int32 {
	if c.DraftVocab == 0 {
		return nil
	}
	tokens := make([]int32, c.DraftVocab)
	for i, token := range rand.New(rand.NewPCG(seed, 7)).Perm(c.Vocab)[:c.DraftVocab] {
		tokens[i] = int32(token)
	}
	return tokens
}

// Tensors are the weights of the head that Network makes of the same arguments, by the names in files.
func Tensors(c specblock.Config, t tensor.Type, seed uint64) ([]tensor.Tensor, error) {
	w := weights(c, t, seed)
	_, err := specblock.NewNetwork(c, w, Tokens(c, seed), &model.Network{})
	return w.Made, err
}
