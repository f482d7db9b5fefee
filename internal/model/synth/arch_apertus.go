package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var apertus = family{
	arch: "apertus",
	named: []Shape{
		{Name: "tiny-apertus", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Llama3: &Llama3Rope{Factor: 8, Low: 1,
				High: 4, Original: 128},
			Tokens: GPT2, Tune: func(c *model.Config) {
				c.XIELU = [][4]float32{{0.25, -1, 0.5, -1e-6}, {-0.5, 0.125, 0.5, -1e-6}, {0.75, -0.375, 0.25, -0.03125}}
			}},
	},
	small: []Shape{
		{Name: "apertus", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: Qwen2},
	},
	random: (*drawing).scalePositions,
}
