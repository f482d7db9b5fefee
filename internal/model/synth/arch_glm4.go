package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var glm4 = family{
	arch:  "glm4",
	named: []Shape{{Name: "tiny-glm4", NormEps: 1.5625e-7, RopeDims: 16, Biases: true}},
	small: []Shape{{RopeDims: 16, Tied: true}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.rotatePart()
		d.scalePositions()
	},
}

var chatglm = family{
	arch:   "chatglm",
	named:  []Shape{{Name: "tiny-chatglm", Hidden: 192, NormEps: 1.5625e-7, RopeDims: 16, Biases: true}},
	small:  []Shape{{RopeDims: 16, Tied: true}},
	random: glm4.random,
}

var glm4MoE = family{
	arch: "glm4moe",
	named: []Shape{{Name: "tiny-glm4moe", Layers: 4, RopeBase: 1e6, RopeDims: 16, Biases: true,
		Tune: func(c *model.Config) {
			tuneExperts(c)
			c.HeadNorms = true
			c.Rule.Norm = true
			c.Rule.Scale = 2.5
			c.Rule.Groups = 4
			c.Rule.Chosen = 2
		}}},
	small: []Shape{{RopeDims: 16, Tied: true, Tune: func(c *model.Config) {
		laterExperts(c, 6, 2, 40, 40)
		c.HeadNorms = true
		c.Rule.Scale = 2.5
		c.Rule.Groups = 3
		c.Rule.Chosen = 2
	}}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.rotatePart()
		d.groups()
	},
}

var dots1 = family{
	arch: "dots1",
	named: []Shape{{Name: "tiny-dots1", Layers: 4, Heads: 4, KVHeads: 4, HeadDim: 48, NormEps: 1e-6,
		Tune: func(c *model.Config) {
			laterExperts(c, 8, 3, 64, 128)
			c.Rule.Norm = true
			c.Rule.Scale = 2.5
		}}},
	small: []Shape{{HeadDim: 48, Tune: func(c *model.Config) {
		laterExperts(c, 6, 2, 40, 40)
		c.Rule.Scale = 2.5
		c.Rule.Groups = 3
		c.Rule.Chosen = 2
	}}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.scalePositions()
		d.groups()
		d.tune(func(c *model.Config) { c.HeadNorms = false })
	},
}
