package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var gemma = family{
	arch: "gemma",
	named: []Shape{
		{Name: "tiny-gemma", KVHeads: 1, HeadDim: 48, NormEps: 1e-6, Tied: true, Tokens: SPM},
		{Name: "gemma-2b", Vocab: 256000, Hidden: 2048, Layers: 18, Heads: 8, KVHeads: 1, HeadDim: 256, FFN: 16384,
			Context: 8192, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 256, Tied: true, Tokens: SPM},
	},
	small:  []Shape{{HeadDim: 48, Tied: true}},
	random: func(d *drawing) { d.scalePositions() },
}

var gemma2 = family{
	arch: "gemma2", mixed: true,
	named: []Shape{{Name: "tiny-gemma2", Layers: 4, HeadDim: 48, NormEps: 1e-6, Tied: true, Tokens: SPM,
		Tune: func(c *model.Config) {
			c.AttnCap, c.LogitCap = 5, 7
			c.SetWindow(70)
		}}},
	small: []Shape{{HeadDim: 48, Tied: true, Tune: windowFirst}},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(d.IntN(4) > 0)
		attn, logit := 5*d.factor(), 7*d.factor()
		d.tune(func(c *model.Config) { c.AttnCap, c.LogitCap = attn, logit })
	},
}

var gemma3 = family{
	arch: "gemma3", mixed: true,
	named: []Shape{
		{Name: "tiny-gemma3", Layers: 7, HeadDim: 48, NormEps: 1e-6, RopeBase: 1e6, Tied: true, Tokens: SPM,
			Tune: func(c *model.Config) {
				c.Rope.Scale = 8
				c.SetWindow(70)
			}},
		{Name: "gemma-3-1b", Vocab: 262144, Hidden: 1152, Layers: 26, Heads: 4, KVHeads: 1, HeadDim: 256, FFN: 6912,
			Context: 32768, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 256, Tied: true, Tokens: SPM,
			Tune: func(c *model.Config) { c.SetWindow(512) }},
	},
	small: []Shape{{HeadDim: 48, RopeBase: 1e6, Tied: true, Tune: windowFirst}},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(d.IntN(4) > 0)
	},
}
