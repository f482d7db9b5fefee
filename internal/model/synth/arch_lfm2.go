package synth

import (
	"slices"

	"github.com/grovellm/grove/internal/model"
)

var lfm2 = family{
	arch: "lfm2", mixed: true,
	named: []Shape{
		{Name: "tiny-lfm2", Layers: 5, Heads: 5, KVHeads: 1, RopeBase: 1e6, Tied: true, Tokens: Llama3,
			Tune: func(c *model.Config) { c.Kernel, c.Recurrent = 3, []bool{true, true, false, true, false} }},
		{Name: "lfm2-1.2b", Vocab: 65536, Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192,
			Context: 32768, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 64, Tied: true, Tokens: Llama3,
			Tune: func(c *model.Config) {
				c.Kernel = 3
				for i := range 16 {
					c.Recurrent = append(c.Recurrent, !slices.Contains([]int{2, 5, 8, 10, 12, 14}, i))
				}
			}},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.recurrent()
	},
}

var lfm2MoE = family{
	arch: "lfm2moe", mixed: true,
	named: []Shape{{Name: "tiny-lfm2moe", Layers: 5, Heads: 5, KVHeads: 1, RopeBase: 1e6, Tied: true, Tokens: Llama3,
		Tune: func(c *model.Config) {
			c.Kernel, c.Recurrent = 3, []bool{true, true, false, true, false}
			c.Experts, c.Used = 8, 3
			c.ExpertFFN, c.Dense = 64, 2
		}}},
	random: func(d *drawing) {
		d.scalePositions()
		d.recurrent()
		d.experts()
		width, dense := d.width(90), d.IntN(d.s.Layers+1)
		d.tune(func(c *model.Config) { c.ExpertFFN, c.Dense = width, dense })
	},
}
