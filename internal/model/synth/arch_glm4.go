package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var glm4 = family{
	arch: "glm4",
	named: []Shape{
		{Name: "tiny-glm4", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1.5625e-7, RopeBase: 1e4, RopeDims: 16, Biases: true, Tokens: Qwen2},
	},
	small: []Shape{
		{Name: "glm4", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 16, Tied: true, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.rotatePart()
		d.scalePositions()
	},
}

var glm4MoE = family{
	arch: "glm4moe",
	named: []Shape{
		{Name: "tiny-glm4moe", Vocab: 416, Hidden: 160, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 16, Biases: true, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts = 8
				c.Used = 3
				c.ExpertFFN = 56
				c.SharedFFN = 112
				c.Dense, c.HeadNorms = 1, true
				c.Rule.Norm = true
				c.Rule.Scale = 2.5
				c.Rule.Groups = 4
				c.Rule.Chosen = 2
			}},
	},
	small: []Shape{
		{Name: "glm4moe", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 16, Tied: true, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts = 6
				c.Used = 2
				c.ExpertFFN = 40
				c.SharedFFN = 40
				c.Dense = 1
				c.HeadNorms = true
				c.Rule.Scale = 2.5
				c.Rule.Groups = 3
				c.Rule.Chosen = 2
			}},
	},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.rotatePart()
		d.groups()
	},
}

var dots1 = family{
	arch: "dots1",
	named: []Shape{
		{Name: "tiny-dots1", Vocab: 416, Hidden: 160, Layers: 4, Heads: 4, KVHeads: 4, HeadDim: 48, FFN: 416,
			Context: 1024, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts = 8
				c.Used = 3
				c.ExpertFFN = 64
				c.SharedFFN = 128
				c.Dense = 1
				c.Rule.Norm = true
				c.Rule.Scale = 2.5
			}},
	},
	small: []Shape{
		{Name: "dots1", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts = 6
				c.Used = 2
				c.ExpertFFN = 40
				c.SharedFFN = 40
				c.Dense = 1
				c.Rule.Scale = 2.5
				c.Rule.Groups = 3
				c.Rule.Chosen = 2
			}},
	},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.scalePositions()
		d.groups()
		d.tune(func(c *model.Config) { c.HeadNorms = false })
	},
}
