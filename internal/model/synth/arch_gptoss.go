package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var gptOSS = family{
	arch: "gpt-oss", mixed: true,
	named: []Shape{
		{Name: "tiny-gpt-oss", Layers: 4, FFN: 96, RopeBase: 15e4, Tokens: GPT2, Tune: func(c *model.Config) {
			c.Experts, c.Used = 7, 3
			yarn(c, 32, 64)
			c.SetWindow(70)
		}},
		{Name: "gpt-oss-20b-4-layers", Vocab: 201088, Hidden: 2880, Layers: 4, Heads: 64, KVHeads: 8, HeadDim: 64,
			FFN: 2880, Context: 131072, NormEps: 1e-5, RopeBase: 15e4, RopeDims: 64, Tokens: GPT2,
			Tune: func(c *model.Config) {
				c.Experts, c.Used = 32, 4
				yarn(c, 32, 4096)
				c.SetWindow(128)
			}},
	},
	small: []Shape{{NormEps: 1e-5, RopeBase: 15e4, Tune: func(c *model.Config) {
		c.Experts, c.Used = 5, 2
		windowFirst(c)
	}}},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(true)
		d.experts()
	},
}
