package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var granite = family{
	arch: "granite", pairs: true,
	named: []Shape{{Name: "tiny-granite", Hidden: 192, Layers: 4, Tied: true, Tokens: GPT2, Tune: tuneGranite}},
	small: []Shape{{Tied: true}},
	random: func(d *drawing) {
		d.scalePositions()
		d.multipliers()
	},
}

var graniteMoE = family{
	arch: "granitemoe", pairs: true,
	named: []Shape{{Name: "tiny-granitemoe", Hidden: 192, FFN: 128, NormEps: 1e-6, Tied: true, Tokens: GPT2,
		Tune: func(c *model.Config) {
			tuneGranite(c)
			c.Experts, c.Used = 8, 3
		}}},
	small: []Shape{{Tied: true, Tune: sparse(5, 2)}},
	random: func(d *drawing) {
		d.scalePositions()
		d.multipliers()
		d.experts()
	},
}

// tuneGranite sets Granite's multipliers.
func tuneGranite(c *model.Config) {
	c.AttnScale = 0.3
	c.EmbedScale = 3
	c.ResidualScale = 0.7
	c.LogitScale = 2.5
}
