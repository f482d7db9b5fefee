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

var minicpm3 = family{
	arch: "minicpm3",
	named: []Shape{
		{Name: "tiny-minicpm3", Hidden: 384, Layers: 4, KVHeads: 1, HeadDim: 80, RopeDims: 16, Tokens: SPM,
			Tune: func(c *model.Config) {
				c.SetLatent(model.LatentConfig{Rank: 64, QueryRank: 96, PlainDim: 32, ValueDim: 64})
			}},
		{Name: "minicpm3-4b", Vocab: 73448, Hidden: 2560, Layers: 62, Heads: 40, KVHeads: 1, HeadDim: 288, FFN: 6400,
			Context: 32768, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: SPM, Tune: func(c *model.Config) {
				c.SetLatent(model.LatentConfig{Rank: 256, QueryRank: 768, PlainDim: 64, ValueDim: 64})
			}},
	},
	small: []Shape{{HeadDim: 56, RopeDims: 24, Tied: true, Tune: func(c *model.Config) {
		c.SetLatent(model.LatentConfig{Rank: 32, QueryRank: 40, PlainDim: 16, ValueDim: 24})
	}}},
	random: func(d *drawing) {
		l := drawRanks(d)
		l.QueryRank = d.width(60)
		d.tune(func(c *model.Config) { c.SetLatent(l) })
	},
}
