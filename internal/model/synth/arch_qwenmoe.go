package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var qwen35MoE = family{
	arch: "qwen35moe", mixed: true, tiled: true,
	named: []Shape{{Name: "tiny-qwen35moe", Layers: 5, Heads: 4, HeadDim: 48, FFN: 64, NormEps: 1e-6, RopeBase: 1e6,
		RopeDims: 12, Tune: func(c *model.Config) {
			sharedExpert(c)
			c.Delta = model.DeltaConfig{KeyHeads: 2, ValueHeads: 6, KeyDim: 32, ValueDim: 32}
		}}},
	random: func(d *drawing) { d.drawSharedExpert(false) },
}

var qwen2MoE = family{
	arch: "qwen2moe",
	named: []Shape{{Name: "tiny-qwen2moe", Hidden: 192, FFN: 64, NormEps: 1e-6, RopeBase: 1e6,
		Tune: func(c *model.Config) {
			c.Experts, c.Used = 11, 3
			c.SharedFFN = 160
		}}},
	small: []Shape{{FFN: 48, Tune: func(c *model.Config) {
		c.Experts, c.Used = 5, 2
		c.SharedFFN = 96
	}}},
	random: func(d *drawing) {
		d.scalePositions()
		d.experts()
		width := d.width(90)
		d.tune(func(c *model.Config) { c.SharedFFN = width })
	},
}

var qwen3next = family{
	arch: "qwen3next", mixed: true,
	named: []Shape{{Name: "tiny-qwen3next", Layers: 5, Heads: 4, HeadDim: 48, FFN: 64, NormEps: 1e-6, RopeBase: 1e6,
		RopeDims: 12, Tune: func(c *model.Config) {
			sharedExpert(c)
			c.Delta = model.DeltaConfig{KeyHeads: 2, ValueHeads: 6, KeyDim: 32, ValueDim: 32, Grouped: true}
		}}},
	random: func(d *drawing) { d.drawSharedExpert(true) },
}

// drawSharedExpert draws recurrent layers, and experts in addition to one that all rows use.
func (d *drawing) drawSharedExpert(grouped bool) {
	d.rotatePart()
	d.scalePositions()
	d.delta(grouped)
	d.experts()
	width := d.width(90)
	d.tune(func(c *model.Config) { c.SharedFFN = width })
}

// sharedExpert gives five layers, three of them recurrent, experts in addition to one that all rows use.
func sharedExpert(c *model.Config) {
	c.Kernel, c.Recurrent = 4, []bool{true, false, true, false, true}
	c.Experts, c.Used = 6, 2
	c.SharedFFN = 96
}
