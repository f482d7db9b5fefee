package synth

import (
	"slices"

	"github.com/grovellm/grove/internal/model"
)

var qwen35 = family{
	arch: "qwen35", mixed: true,
	named: []Shape{
		{Name: "tiny-qwen35", Layers: 5, Heads: 4, HeadDim: 48, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 12,
			Tune: func(c *model.Config) {
				c.Kernel, c.Recurrent = 4, []bool{true, true, false, true, false}
				c.Delta = model.DeltaConfig{KeyHeads: 3, ValueHeads: 3, KeyDim: 32, ValueDim: 32}
			}},
		{Name: "qwen3.5-0.8b", Vocab: 248320, Hidden: 1024, Layers: 24, Heads: 8, KVHeads: 2, HeadDim: 256, FFN: 3584,
			Context: 262144, NormEps: 1e-6, RopeBase: 1e7, RopeDims: 64, Tied: true, Tokens: Qwen2,
			Tune: func(c *model.Config) {
				c.Kernel = 4
				c.Recurrent = slices.Repeat([]bool{true, true, true, false}, 6)
				c.Delta = model.DeltaConfig{KeyHeads: 16, ValueHeads: 16, KeyDim: 128, ValueDim: 128}
			}},
		{Name: "qwen3.5-4b", Vocab: 248320, Hidden: 2560, Layers: 32, Heads: 16, KVHeads: 4, HeadDim: 256, FFN: 9216,
			Context: 262144, NormEps: 1e-6, RopeBase: 1e7, RopeDims: 64, Tied: true, Tokens: Qwen2,
			Tune: func(c *model.Config) {
				c.Kernel = 4
				c.Recurrent = slices.Repeat([]bool{true, true, true, false}, 8)
				c.Delta = model.DeltaConfig{KeyHeads: 16, ValueHeads: 32, KeyDim: 128, ValueDim: 128}
				c.Ahead = 1
			}},
	},
	random: func(d *drawing) {
		d.rotatePart()
		d.scalePositions()
		d.delta(false)
	},
}
