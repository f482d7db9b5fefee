package synth

import (
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

var mistral3 = family{
	arch: "mistral3", pairs: true,
	named: []Shape{{Name: "tiny-mistral3", HeadDim: 48, RopeBase: 1e5, Tune: func(c *model.Config) {
		c.Rope.Scale = 16
		c.Rope.Original = 64
		c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1, LogMul: 1}
		c.Temper = nn.Temper{Scale: 0.1, Length: 64}
	}}},
	small: []Shape{{NormEps: 1e-5, Tied: true}},
	random: func(d *drawing) {
		d.scalePositions()
		d.tune(func(c *model.Config) {
			if c.Rope.Yarn != nil {
				c.Temper = nn.Temper{Scale: 0.1, Length: c.Rope.Original}
			}
		})
	},
}
