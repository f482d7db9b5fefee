package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var granite = family{
	arch: "granite", pairs: true,
	named: []Shape{
		{Name: "tiny-granite", Vocab: 416, Hidden: 192, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
				c.AttnScale = 0.3
				c.EmbedScale = 3
				c.ResidualScale = 0.7
				c.LogitScale = 2.5
			}},
	},
	small: []Shape{
		{Name: "granite", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.multipliers()
	},
}

var graniteMoE = family{
	arch: "granitemoe", pairs: true,
	named: []Shape{
		{Name: "tiny-granitemoe", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 128,
			Context: 1024, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
				c.AttnScale = 0.3
				c.EmbedScale = 3
				c.ResidualScale = 0.7
				c.LogitScale = 2.5
				c.Experts, c.Used = 8, 3
			}},
	},
	small: []Shape{
		{Name: "granitemoe", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: Qwen2, Tune: sparse(5, 2)},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.multipliers()
		d.experts()
	},
}
