package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var minicpm = family{
	arch: "minicpm", pairs: true,
	named: []Shape{
		{Name: "tiny-minicpm", Vocab: 416, Hidden: 192, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: SPM, Tune: func(c *model.Config) {
				c.EmbedScale = 6
				c.ResidualScale = 0.7
				c.LogitScale = 1.5
			}},
	},
	small: []Shape{
		{Name: "minicpm", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.scalePositions()
		embedding, residual := d.factor(), d.factor()
		d.tune(func(c *model.Config) { c.EmbedScale, c.ResidualScale = embedding, residual })
	},
}
