package synth

import (
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

var mistral3 = family{
	arch: "mistral3", pairs: true,
	named: []Shape{
		{Name: "tiny-mistral3", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e5, RopeDims: 48, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Rope.Scale = 16
				c.Rope.Original = 64
				c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1, LogMul: 1}
				c.Temper = nn.Temper{Scale: 0.1, Length: 64}
			}},
	},
	small: []Shape{
		{Name: "mistral3", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.tune(func(c *model.Config) {
			if c.Rope.Yarn != nil {
				c.Temper = nn.Temper{Scale: 0.1, Length: c.Rope.Original}
			}
		})
	},
}
