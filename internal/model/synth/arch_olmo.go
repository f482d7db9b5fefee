package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var olmo = family{
	arch: "olmo", pairs: true,
	named: []Shape{{Name: "tiny-olmo", Hidden: 192, Tokens: GPT2, Tune: func(c *model.Config) { c.Clip = 1.5 }}},
	small: []Shape{{NormEps: 1e-5, Tied: true}},
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
		{Name: "tiny-olmo2", Hidden: 192, Layers: 4, NormEps: 1e-6, RopeBase: 5e5, Tokens: GPT2},
		{Name: "tiny-olmo3", Hidden: 192, Layers: 5, KVHeads: 6, NormEps: 1e-6, RopeBase: 5e5, Tokens: GPT2,
			Tune: func(c *model.Config) {
				yarn(c, 8, 64)
				c.SetWindow(70)
			}},
	},
	small: []Shape{{NormEps: 1e-5, Tune: windowFirst}},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(d.IntN(4) > 0)
	},
}
