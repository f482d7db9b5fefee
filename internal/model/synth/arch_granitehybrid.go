package synth

import (
	"slices"

	"github.com/grovellm/grove/internal/model"
)

var graniteHybrid = family{
	arch: "granitehybrid", pairs: true, fewest: 2, mixed: true,
	named: []Shape{
		{Name: "tiny-granite-hybrid", Hidden: 192, Layers: 5, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
			mambaLayers(c, model.MambaConfig{Heads: 12, Groups: 1, HeadDim: 32, StateDim: 48})
		}},
		{Name: "tiny-granite-hybrid-experts", Hidden: 192, Layers: 5, FFN: 96, Tied: true, Tokens: GPT2,
			Tune: func(c *model.Config) {
				mambaLayers(c, model.MambaConfig{Heads: 12, Groups: 2, HeadDim: 32, StateDim: 48})
				c.Experts, c.Used = 7, 3
				c.SharedFFN = 160
			}},
	},
	small: []Shape{
		{Tied: true, Tune: mambaFirst(0)},
		{Name: "granitehybrid-experts", Tied: true, Tune: mambaFirst(5)},
	},
	random: drawGraniteHybrid,
}

var jamba = family{
	arch: "jamba", fewest: 2, mixed: true,
	named: []Shape{
		{Name: "tiny-jamba", Hidden: 192, Layers: 5, NormEps: 1e-6, Tied: true, Tokens: SPM, Tune: jambaLayers(0)},
		{Name: "tiny-jamba-experts", Hidden: 192, Layers: 5, FFN: 96, NormEps: 1e-6, Tokens: SPM, Tune: jambaLayers(7)},
	},
	small: []Shape{
		{Tied: true, Tune: jambaLayers(0)},
		{Name: "jamba-experts", Tied: true, Tune: jambaLayers(5)},
	},
	random: func(d *drawing) {
		s := d.s
		s.Hidden = s.Heads * s.HeadDim
		period := 2 + d.IntN(3)
		offset := d.IntN(min(period, s.Layers))
		kernel, every := 1+d.IntN(6), 1+d.IntN(3)
		states, rank := 1+d.IntN(20), d.width(20)
		d.tune(func(c *model.Config) {
			c.Mamba = model.MambaConfig{Heads: 1, Groups: 1, HeadDim: 2 * c.Hidden, StateDim: states, Rank: rank}
			c.Kernel, c.Recurrent = kernel, nil
			for i := range c.Layers {
				c.Recurrent = append(c.Recurrent, i%period != offset)
			}
			c.NoRope = slices.Repeat([]bool{true}, c.Layers)
		})
		if d.IntN(3) > 0 {
			experts := 2 + d.IntN(8)
			d.tune(sparse(experts, 1+d.IntN(experts)))
			d.tune(func(c *model.Config) { c.Every = min(every, c.Layers) })
		}
	},
}

// jambaLayers makes every other layer Mamba, and gives every other one experts.
func jambaLayers(experts int) func(c *model.Config) {
	return func(c *model.Config) {
		c.Mamba = model.MambaConfig{Heads: 1, Groups: 1, HeadDim: 2 * c.Hidden, StateDim: 12, Rank: 32}
		c.Kernel, c.Recurrent = 4, nil
		for i := range c.Layers {
			c.Recurrent = append(c.Recurrent, i%2 == 0)
		}
		c.NoRope = slices.Repeat([]bool{true}, c.Layers)
		if experts > 0 {
			c.Experts, c.Used = experts, 2
			c.Every = 2
		}
	}
}

// drawGraniteHybrid draws layers of Mamba-2, experts or none, and multipliers.
func drawGraniteHybrid(d *drawing) {
	s := d.s
	s.Hidden = s.Heads * s.HeadDim
	recurrent := make([]bool, s.Layers)
	for i := range recurrent {
		recurrent[i] = i == 0 || i < s.Layers-1 && d.IntN(3) > 0
	}
	var dims []int
	for n := 2; n <= 32; n++ { // the heads together are twice the width
		if 2*s.Hidden%n == 0 && (d.unit == 1 || n >= 16) {
			dims = append(dims, n)
		}
	}
	m := model.MambaConfig{HeadDim: dims[d.IntN(len(dims))], StateDim: 1 + d.IntN(40)}
	m.Heads = 2 * s.Hidden / m.HeadDim
	m.Groups = 1
	if n := 2 + d.IntN(2); m.Heads%n == 0 {
		m.Groups = n
	}
	kernel, still := 1+d.IntN(6), d.IntN(3) > 0
	d.tune(func(c *model.Config) {
		c.Kernel, c.Recurrent = kernel, recurrent
		c.Mamba = m
		if still {
			c.NoRope = slices.Repeat([]bool{true}, c.Layers)
		}
	})
	d.multipliers()
	if d.IntN(6) > 0 {
		d.experts()
		shared := d.width(90)
		d.tune(func(c *model.Config) { c.SharedFFN = shared })
	}
}

// mambaLayers makes three of five layers Mamba-2, and sets Granite's multipliers.
func mambaLayers(c *model.Config, m model.MambaConfig) {
	c.Kernel, c.Recurrent = 4, []bool{true, true, false, true, false}
	c.Mamba = m
	c.NoRope = slices.Repeat([]bool{true}, c.Layers)
	tuneGranite(c)
}

// mambaFirst makes the first of two layers Mamba-2.
func mambaFirst(experts int) func(c *model.Config) {
	return func(c *model.Config) {
		c.Kernel, c.Recurrent = 3, []bool{true, false}
		c.Mamba = model.MambaConfig{Heads: 8, Groups: 2, HeadDim: 16, StateDim: 12}
		if experts > 0 {
			c.Experts, c.Used = experts, 2
			c.SharedFFN = 40
		}
	}
}
