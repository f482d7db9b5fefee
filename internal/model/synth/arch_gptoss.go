package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var gptOSS = family{
	arch: "gpt-oss", mixed: true,
	named: []Shape{
		{Name: "tiny-gpt-oss", Vocab: 416, Hidden: 160, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 96,
			Context: 1024, NormEps: 1e-5, RopeBase: 15e4, RopeDims: 32, Tokens: GPT2, Tune: func(c *model.Config) {
				c.Experts, c.Used = 7, 3
				c.Rope.Scale = 32
				c.Rope.Original = 64
				c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
				c.SetWindow(70)
			}},
		{Name: "gpt-oss-20b-4-layers", Vocab: 201088, Hidden: 2880, Layers: 4, Heads: 64, KVHeads: 8, HeadDim: 64,
			FFN: 2880, Context: 131072, NormEps: 1e-5, RopeBase: 15e4, RopeDims: 64, Tokens: GPT2, Tune: func(c *model.Config) {
				c.Experts, c.Used = 32, 4
				c.Rope.Scale = 32
				c.Rope.Original = 4096
				c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
				c.SetWindow(128)
			}},
	},
	small: []Shape{
		{Name: "gpt-oss", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-5, RopeBase: 15e4, RopeDims: 32, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts, c.Used = 5, 2
				windowFirst(c)
			}},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(true)
		d.experts()
	},
}
