package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var olmo = family{
	arch: "olmo", pairs: true,
	named: []Shape{
		{Name: "tiny-olmo", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: GPT2,
			Tune: func(c *model.Config) { c.Clip = 1.5 }},
	},
	small: []Shape{
		{Name: "olmo", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		if clip := d.factor(); d.IntN(2) == 0 {
			d.tune(func(c *model.Config) { c.Clip = clip })
		}
		d.scalePositions()
	},
}

var olmo2 = family{
	arch: "olmo2", mixed: true,
	named: []Shape{
		{Name: "tiny-olmo2", Vocab: 416, Hidden: 192, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 32, Tokens: GPT2},
		{Name: "tiny-olmo3", Vocab: 416, Hidden: 192, Layers: 5, Heads: 6, KVHeads: 6, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 32, Tokens: GPT2, Tune: func(c *model.Config) {
				c.Rope.Scale = 8
				c.Rope.Original = 64
				c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
				c.SetWindow(70)
			}},
	},
	small: []Shape{
		{Name: "olmo2", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: Qwen2, Tune: windowFirst},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(d.IntN(4) > 0)
	},
}
