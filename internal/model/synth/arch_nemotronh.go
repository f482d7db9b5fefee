package synth

import (
	"slices"

	"github.com/grovellm/grove/internal/model"
)

var nemotronH = family{
	arch: "nemotron_h", pairs: true, fewest: 3, mixed: true,
	named: []Shape{{Name: "tiny-nemotron-h", Hidden: 128, Layers: 7, Heads: 4, HeadDim: 24, FFN: 352,
		Tune: func(c *model.Config) {
			oneHalf(c, "M-M*-M*", model.MambaConfig{Heads: 20, Groups: 2, HeadDim: 16, StateDim: 40})
		}}},
	small:  []Shape{{Layers: 3, HeadDim: 48, Tied: true, Tune: threeHalves}},
	random: drawNemotron,
}

var nemotronHMoE = family{
	arch: "nemotron_h_moe", pairs: true, fewest: 3, mixed: true,
	named: []Shape{{Name: "tiny-nemotron-h-experts", Hidden: 128, Layers: 7, Heads: 4, HeadDim: 24, FFN: 96,
		Tune: func(c *model.Config) {
			oneHalf(c, "MEM*E*E", model.MambaConfig{Heads: 20, Groups: 2, HeadDim: 16, StateDim: 40})
			c.Experts, c.Used = 8, 3
			c.ExpertFFN, c.SharedFFN = 96, 160
			c.Narrow = 64
			c.Rule.Norm, c.Rule.Scale = true, 2.5
			c.Rule.Groups, c.Rule.Chosen = 1, 1
		}}},
	small: []Shape{{Layers: 3, HeadDim: 48, Tied: true, Tune: func(c *model.Config) {
		threeHalves(c)
		c.Experts, c.Used = 6, 2
		c.ExpertFFN, c.SharedFFN = 96, 40
		c.Narrow = 32
		c.Rule.Scale = 2.5
		c.Rule.Groups, c.Rule.Chosen = 3, 2
	}}},
	random: drawNemotron,
}

// drawNemotron draws layers that are one half each, and experts.
func drawNemotron(d *drawing) {
	s := d.s
	kinds := append([]int{0, 1, 2}, make([]int, s.Layers-3)...) // Mamba-2, attention, MLP or experts
	for i := range kinds[3:] {
		kinds[3+i] = d.IntN(3)
	}
	d.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	m := model.MambaConfig{Groups: 1 + d.IntN(3), HeadDim: 1 + d.IntN(24), StateDim: 1 + d.IntN(40)}
	m.Heads = m.Groups * (1 + d.IntN(3))
	if d.unit > 1 { // rows consist of whole blocks
		m.HeadDim, m.Heads = d.unit/4, 4*m.Groups
	}
	kernel, narrow := 1+d.IntN(6), d.IntN(2)*d.width(60)
	if s.Arch == "nemotron_h_moe" {
		d.groups()
	}
	d.tune(func(c *model.Config) {
		c.Dense, c.HeadNorms = 0, false
		if c.Experts > 0 {
			c.Rule.Sigmoid = true
			c.FFN, c.Narrow = c.ExpertFFN, narrow
		}
		c.Kernel, c.Mamba = kernel, m
		c.NoRope = slices.Repeat([]bool{true}, c.Layers)
		c.Recurrent, c.Bare = make([]bool, c.Layers), make([]bool, c.Layers)
		for i, k := range kinds {
			c.Recurrent[i] = k == 0
			c.Bare[i] = k == 2
		}
	})
}

// oneHalf gives each layer one half by its letter: M is Mamba-2, * attention without rotation, others MLPs or experts.
func oneHalf(c *model.Config, kinds string, m model.MambaConfig) {
	c.Kernel, c.Mamba = 4, m
	c.NoRope = slices.Repeat([]bool{true}, c.Layers)
	for _, k := range kinds {
		c.Recurrent = append(c.Recurrent, k == 'M')
		c.Bare = append(c.Bare, k != 'M' && k != '*')
	}
}

// threeHalves makes three layers Mamba-2, attention, and an MLP.
func threeHalves(c *model.Config) {
	oneHalf(c, "M*-", model.MambaConfig{Heads: 8, Groups: 2, HeadDim: 16, StateDim: 12})
	c.Kernel = 3
}
