package synth

import (
	"slices"

	"github.com/grovellm/grove/internal/model"
)

var gptneox = family{
	arch: "gptneox",
	named: []Shape{
		{Name: "tiny-gptneox", Vocab: 600, Hidden: 192, Heads: 4, KVHeads: 4, HeadDim: 48, FFN: 768, RopeDims: 12,
			Parallel: true, Tokens: GPT2},
		{Name: "tiny-gptneox-sequential", Vocab: 600, Heads: 5, KVHeads: 5, FFN: 640, RopeDims: 16, Tokens: GPT2},
		{Name: "pythia-70m", Vocab: 50304, Hidden: 512, Layers: 6, Heads: 8, KVHeads: 8, HeadDim: 64, FFN: 2048,
			Context: 2048, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Parallel: true, Tokens: GPT2},
		{Name: "pythia-160m", Vocab: 50304, Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072,
			Context: 2048, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Parallel: true, Tokens: GPT2},
		{Name: "pythia-410m", Vocab: 50304, Hidden: 1024, Layers: 24, Heads: 16, KVHeads: 16, HeadDim: 64, FFN: 4096,
			Context: 2048, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Parallel: true, Tokens: GPT2},
	},
	small: []Shape{{KVHeads: 2, NormEps: 1e-5, RopeDims: 16, Parallel: true, Tokens: GPT2}},
	random: func(d *drawing) {
		d.s.KVHeads = d.s.Heads
		d.s.Parallel = d.IntN(2) == 0
		d.rotatePart()
		d.scalePositions()
	},
}

var gpt2 = family{
	arch: "gpt2",
	named: []Shape{{Name: "tiny-gpt2", Hidden: 192, KVHeads: 6, FFN: 768, Tied: true, Tokens: GPT2,
		Tune: stillness}},
	small: []Shape{{KVHeads: 2, Tied: true, Tune: stillness}},
	random: func(d *drawing) {
		d.s.KVHeads = d.s.Heads
		d.tune(stillness)
	},
}

// stillness turns rotation off in all layers.
func stillness(c *model.Config) {
	c.NoRope = slices.Repeat([]bool{true}, c.Layers)
}
