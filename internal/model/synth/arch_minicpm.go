package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var minicpm = family{
	arch: "minicpm", pairs: true,
	named: []Shape{{Name: "tiny-minicpm", Hidden: 192, Layers: 4, Tokens: SPM, Tune: func(c *model.Config) {
		c.EmbedScale = 6
		c.ResidualScale = 0.7
		c.LogitScale = 1.5
	}}},
	small: []Shape{{Tied: true}},
	random: func(d *drawing) {
		d.scalePositions()
		embedding, residual := d.factor(), d.factor()
		d.tune(func(c *model.Config) { c.EmbedScale, c.ResidualScale = embedding, residual })
	},
}
