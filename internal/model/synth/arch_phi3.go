package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var phi3 = family{
	arch: "phi3",
	named: []Shape{
		{Name: "tiny-longrope", Hidden: 192, RopeDims: 24, Tokens: SPM, Tune: func(c *model.Config) {
			c.Rope.Original, c.Rope.Attn = 300, 1.1875
			for i := range c.Rope.Dims / 2 {
				c.Rope.Short = append(c.Rope.Short, 1+float32(i)/16)
				c.Rope.Long = append(c.Rope.Long, 1+float32(i*i)/4)
			}
		}},
		{Name: "phi-4-mini", Vocab: 200064, Hidden: 3072, Layers: 32, Heads: 24, KVHeads: 8, HeadDim: 128, FFN: 8192,
			Context: 131072, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 96, Tied: true, Tokens: GPT2,
			Tune: func(c *model.Config) {
				c.Rope.Original, c.Rope.Attn = 4096, 1.19
				for i := range c.Rope.Dims / 2 {
					c.Rope.Short = append(c.Rope.Short, 1)
					c.Rope.Long = append(c.Rope.Long, 1+float32(i))
				}
			}},
	},
	small: []Shape{{NormEps: 1e-5, RopeDims: 24, Tied: true}},
	random: func(d *drawing) {
		d.rotatePart()
		d.window(d.IntN(4) > 0)
		if d.IntN(3) > 0 {
			d.scalePositions()
			return
		}
		d.tune(func(c *model.Config) {
			c.Rope.Original, c.Rope.Attn = 64, 1.2
			for i := range c.Rope.Dims / 2 {
				c.Rope.Short, c.Rope.Long = append(c.Rope.Short, 1), append(c.Rope.Long, 1+float32(i))
			}
		})
	},
}

var phimoe = family{
	arch:  "phimoe",
	named: []Shape{{Name: "tiny-phimoe", Hidden: 192, FFN: 96, Biases: true, Tokens: SPM, Tune: sparse(7, 2)}},
	small: []Shape{{Biases: true, Tokens: SPM, Tune: sparse(5, 2)}},
	random: func(d *drawing) {
		d.s.Biases, d.s.Tied = true, false
		d.experts()
		d.tune(func(c *model.Config) { c.Experts, c.Used = max(c.Experts, 2), 2 })
	},
}
