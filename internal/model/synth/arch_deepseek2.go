package synth

import (
	"cmp"
	"slices"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

var deepseek = family{
	arch: "deepseek", pairs: true,
	named: []Shape{{Name: "tiny-deepseek", Hidden: 192, Layers: 4, KVHeads: 6, NormEps: 1e-6,
		Tune: func(c *model.Config) { laterExperts(c, 11, 3, 64, 128) }}},
	small: []Shape{{Tied: true, Tune: func(c *model.Config) { laterExperts(c, 6, 2, 40, 40) }}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.scalePositions()
		d.groups()
		d.tune(func(c *model.Config) {
			c.Rule = nn.Rule{All: true}
			c.HeadNorms = false
		})
	},
}

var deepseek2 = family{
	arch: "deepseek2",
	named: []Shape{
		{Name: "tiny-deepseek2", Heads: 5, KVHeads: 1, HeadDim: 48, Context: 2560, NormEps: 1e-6, RopeDims: 16,
			Tune: func(c *model.Config) {
				c.SetLatent(model.LatentConfig{Rank: 32, PlainDim: 32, ValueDim: 24})
				c.Rope.Scale = 40
				c.Rope.Original = 64
				c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1, LogMul: 0.707, Plain: true}
				tuneExperts(c)
				c.Rule.Scale = 1.5
			}},
		{Name: "tiny-glm4lite", Layers: 4, Heads: 5, KVHeads: 1, HeadDim: 80, RopeBase: 1e6, RopeDims: 16,
			Tune: func(c *model.Config) {
				c.SetLatent(model.LatentConfig{Rank: 64, QueryRank: 96, PlainDim: 32, ValueDim: 56})
				tuneExperts(c)
				c.Rule.All, c.Rule.Sigmoid = false, true
				c.Rule.Norm = true
				c.Rule.Scale = 1.8
				c.Rule.Groups = 4
				c.Rule.Chosen = 2
			}},
		{Name: "tiny-youtu", Hidden: 192, Layers: 4, Heads: 5, KVHeads: 1, HeadDim: 80, NormEps: 1e-6, RopeBase: 1.6e6,
			RopeDims: 16, Tied: true, Tune: func(c *model.Config) {
				c.SetLatent(model.LatentConfig{Rank: 64, QueryRank: 96, PlainDim: 32, ValueDim: 64})
			}},
	},
	small: []Shape{{HeadDim: 56, RopeDims: 24, Tied: true, Tune: func(c *model.Config) {
		c.SetLatent(model.LatentConfig{Rank: 32, PlainDim: 16, ValueDim: 24})
		laterExperts(c, 6, 2, 40, 40)
		c.Rule.Scale = 2.5
		c.Rule.All, c.Rule.Sigmoid = false, true
		c.Rule.Groups = 3
		c.Rule.Chosen = 2
	}}, {Name: "youtu", HeadDim: 56, RopeDims: 24, Tied: true, Tune: func(c *model.Config) {
		c.SetLatent(model.LatentConfig{Rank: 32, PlainDim: 16, ValueDim: 24})
	}}},
	random: func(d *drawing) {
		if d.IntN(3) > 0 {
			drawLatent(d)
			return
		}
		l := drawRanks(d)
		d.tune(func(c *model.Config) {
			c.SetLatent(l)
			c.HeadNorms = false
		})
	},
}

var mistral4 = family{
	arch: "mistral4",
	named: []Shape{{Name: "tiny-mistral4", Heads: 5, KVHeads: 1, HeadDim: 80, Context: 2560, NormEps: 1e-6,
		RopeDims: 16, Tune: func(c *model.Config) {
			c.SetLatent(model.LatentConfig{Rank: 64, QueryRank: 96, PlainDim: 32, ValueDim: 64})
			c.Rope.Scale = 40
			c.Rope.Original = 64
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1, LogMul: 1, Plain: true}
			c.Temper = nn.Temper{Scale: 0.1, Length: 64}
			tuneExperts(c)
			c.Rule.Norm = true
		}}},
	small: []Shape{{HeadDim: 56, RopeDims: 24, Tied: true, Tune: func(c *model.Config) {
		c.SetLatent(model.LatentConfig{Rank: 32, PlainDim: 16, ValueDim: 24})
		laterExperts(c, 6, 2, 40, 40)
		c.Rule.Norm = true
	}}},
	random: func(d *drawing) {
		drawLatent(d)
		d.tune(func(c *model.Config) {
			c.Rule.Sigmoid, c.Rule.All = false, true
			c.Rule.Groups, c.Rule.Chosen = 0, 0
			if c.Rope.Yarn != nil {
				c.Temper = nn.Temper{Scale: 0.1, Length: c.Rope.Original}
			}
		})
	},
}

var kimiLinear = family{
	arch: "kimi-linear", mixed: true,
	named: []Shape{{Name: "tiny-kimi-linear", Layers: 5, Heads: 4, KVHeads: 1, HeadDim: 80, RopeDims: 16,
		Tune: func(c *model.Config) {
			tuneKimi(c, model.LatentConfig{Rank: 64, PlainDim: 32, ValueDim: 56}, 24)
			tuneExperts(c)
			c.Recurrent = []bool{true, true, false, true, false}
			c.Rule.Scale = 2.446
		}}},
	small: []Shape{{HeadDim: 56, NormEps: 1e-5, RopeDims: 24, Tune: func(c *model.Config) {
		tuneKimi(c, model.LatentConfig{Rank: 32, PlainDim: 16, ValueDim: 24}, 16)
		tuneExperts(c)
		c.Recurrent = []bool{false, true}
		c.Rule.Scale = 2.5
	}}},
	random: func(d *drawing) {
		drawLatent(d)
		d.recurrent()
		dim := d.unit * (1 + d.IntN(max(1, 40/d.unit)))
		d.s.Tied = false
		d.tune(func(c *model.Config) { tuneKimi(c, c.Latent, dim) })
	},
}

// tuneKimi gives a model latent attention without rotation, and heads of Kimi Delta Attention.
func tuneKimi(c *model.Config, l model.LatentConfig, dim int) {
	c.SetLatent(l)
	c.Kernel = cmp.Or(c.Kernel, 4)
	c.Delta = model.DeltaConfig{KeyHeads: c.Heads, ValueHeads: c.Heads, KeyDim: dim, ValueDim: dim}
	c.Rule.Sigmoid, c.Rule.All = true, false
	c.Rule.Norm = true
	c.Rope = model.RopeConfig{Base: c.Rope.Base, Dims: c.Rope.Dims, Scale: 1}
	c.NoRope = slices.Repeat([]bool{true}, c.Layers)
}

// drawLatent draws latent attention, and experts in groups, chosen by either rule.
func drawLatent(d *drawing) {
	d.groups()
	l := drawRanks(d)
	sigma, yarn := d.IntN(2) == 0, d.IntN(3) == 0
	d.tune(func(c *model.Config) {
		c.SetLatent(l)
		c.HeadNorms = false
		c.Rule.Sigmoid, c.Rule.All = sigma, !sigma
		if !sigma {
			c.Rule.Norm = false
			c.Rule.Groups = 0
			c.Rule.Chosen = 0
		}
		if yarn {
			c.Rope.Scale = 4
			c.Rope.Original = 64
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1, LogMul: 0.7, Plain: true}
		}
	})
}

// drawRanks draws the widths of latent attention.
func drawRanks(d *drawing) model.LatentConfig {
	width := func(most int) int { return d.unit * (1 + d.IntN(max(1, most/d.unit))) }
	l := model.LatentConfig{Rank: width(80), PlainDim: width(40), ValueDim: width(40)}
	if d.IntN(2) == 0 {
		l.QueryRank = width(60)
	}
	if l.Rank == 1 {
		l.Rank = 2
	}
	d.s.RopeDims = 2 * (1 + d.IntN(16))
	d.s.KVHeads = 1
	d.s.HeadDim = l.Rank + d.s.RopeDims
	return l
}
