package synth

import "github.com/grovellm/grove/internal/model"

var falconH1 = family{
	arch: "falcon-h1",
	named: []Shape{
		{Name: "tiny-falcon-h1", Hidden: 128, HeadDim: 16, FFN: 352, RopeBase: 1e10, Tokens: Llama3,
			Tune: func(c *model.Config) {
				parallelMamba(c, model.MambaConfig{Heads: 6, Groups: 1, HeadDim: 16, StateDim: 40, Plain: true})
			}},
		{Name: "tiny-falcon-h1-norm", Hidden: 128, HeadDim: 16, FFN: 352, Tokens: Llama3,
			Tune: func(c *model.Config) {
				parallelMamba(c, model.MambaConfig{Heads: 8, Groups: 2, HeadDim: 20, StateDim: 24})
			}},
	},
	small: []Shape{{Tune: func(c *model.Config) {
		parallelMamba(c, model.MambaConfig{Heads: 8, Groups: 2, HeadDim: 20, StateDim: 12})
	}}},
	random: drawFalcon,
}

// drawFalcon draws the shape of Mamba-2.
func drawFalcon(d *drawing) {
	m := model.MambaConfig{Groups: 1 + d.IntN(3), HeadDim: 1 + d.IntN(24), StateDim: 1 + d.IntN(40), Plain: d.IntN(2) == 0}
	m.Heads = m.Groups * (1 + d.IntN(3))
	if d.unit > 1 { // rows consist of whole blocks
		m.HeadDim, m.Heads = d.unit/4, 4*m.Groups
	}
	kernel, scaled := 1+d.IntN(6), d.IntN(2) == 0
	d.tune(func(c *model.Config) {
		parallelMamba(c, m)
		c.Kernel = kernel
		if !scaled {
			c.Scales = nil
		}
		if c.Tied && scaled {
			c.Scales.Head = c.Scales.Embed
		}
	})
}

// parallelMamba gives layers Mamba-2, and folders every kind of scale.
func parallelMamba(c *model.Config, m model.MambaConfig) {
	c.Kernel, c.Mamba = 4, m
	s := &model.FolderScales{Embed: 4, Head: 0.5, AttnIn: 2, AttnOut: 0.25, Key: 0.5, MambaIn: 0.25, MambaOut: 8}
	s.Mamba[0], s.Mamba[1] = 0.5, 2
	s.Mamba[2], s.Mamba[3] = 4, 0.125
	s.Mamba[4] = 16
	s.MLP[0], s.MLP[1] = 2, 0.5
	c.Scales = s
}
