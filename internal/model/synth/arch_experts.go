package synth

import (
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

var qwen3MoE = family{
	arch: "qwen3moe",
	named: []Shape{
		{Name: "tiny-qwen3moe", Hidden: 192, HeadDim: 48, FFN: 96, NormEps: 1e-6, RopeBase: 1e6, Tied: true,
			Tune: sparse(11, 3)},
		{Name: "qwen3-30b-a3b-4-layers", Vocab: 151936, Hidden: 2048, Layers: 4, Heads: 32, KVHeads: 4, HeadDim: 128,
			FFN: 768, Context: 40960, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 128, Tokens: Qwen2,
			Tune: sparse(128, 8)},
	},
	small: []Shape{{HeadDim: 48, Tied: true, Tune: sparse(5, 2)}},
	random: func(d *drawing) {
		d.scalePositions()
		d.experts()
	},
}

var mellum = family{
	arch: "mellum", mixed: true,
	named: []Shape{{Name: "tiny-mellum", HeadDim: 48, FFN: 96, NormEps: 1e-6, RopeBase: 5e5, Tokens: GPT2,
		Tune: func(c *model.Config) {
			c.Experts, c.Used = 11, 3
			yarn(c, 2, 64)
			c.SetWindow(70)
			c.Windowed = []bool{true, true, false}
			c.LocalRope.Base = 1e4
		}}},
	small: []Shape{{HeadDim: 48, Tune: func(c *model.Config) {
		c.Experts, c.Used = 5, 2
		windowFirst(c)
	}}},
	random: func(d *drawing) {
		d.scalePositions()
		d.experts()
		d.window(d.IntN(4) > 0)
	},
}

var olmoe = family{
	arch:  "olmoe",
	named: []Shape{{Name: "tiny-olmoe", Hidden: 192, KVHeads: 6, FFN: 96, Tokens: GPT2, Tune: sparse(12, 4)}},
	small: []Shape{{NormEps: 1e-5, Tune: sparse(5, 2)}},
	random: func(d *drawing) {
		d.scalePositions()
		d.experts()
	},
}

var ernie45MoE = family{
	arch: "ernie4_5-moe",
	named: []Shape{{Name: "tiny-ernie4_5-moe", Layers: 4, HeadDim: 48, FFN: 384, RopeBase: 5e5, Tied: true,
		Tokens: SPM, Tune: func(c *model.Config) {
			// llama.cpp's converter derives the shared width from an expert's and the key/value heads.
			laterExperts(c, 8, 3, 96, 192)
		}}},
	small: []Shape{{HeadDim: 48, RopeBase: 5e5, Tied: true, Tune: func(c *model.Config) { laterExperts(c, 6, 2, 48, 96) }}},
	random: func(d *drawing) {
		d.groups()
		d.scalePositions()
		d.tune(func(c *model.Config) {
			c.Rule = nn.Rule{All: true, Norm: true}
			c.HeadNorms = false
		})
	},
}

var bailing = family{
	arch: "bailingmoe", pairs: true,
	named: []Shape{{Name: "tiny-bailingmoe", Layers: 4, NormEps: 1e-6, RopeBase: 6e5, Tune: lingExperts}},
	small: []Shape{{Tune: lingExperts}},
	random: func(d *drawing) {
		d.s.Tied = false
		d.scalePositions()
		d.groups()
		d.tune(func(c *model.Config) {
			c.Rule = nn.Rule{All: true, Norm: c.Rule.Norm}
			c.HeadNorms, c.Dense = false, 0
		})
	},
}

// lingExperts gives a model experts as in Ling 1.
func lingExperts(c *model.Config) {
	c.Experts, c.Used = 8, 3
	c.ExpertFFN, c.SharedFFN = 64, 128
	c.Rule = nn.Rule{All: true, Norm: true}
}

var bailing2 = family{
	arch: "bailingmoe2",
	named: []Shape{{Name: "tiny-bailingmoe2", Layers: 4, Heads: 4, HeadDim: 40, NormEps: 1e-6, RopeBase: 6e5,
		RopeDims: 20, Tune: func(c *model.Config) {
			laterExperts(c, 8, 3, 64, 64)
			c.Rule.Norm = true
			c.Rule.Scale = 2.5
			c.Rule.Groups = 4
			c.Rule.Chosen = 2
		}}},
	small: []Shape{{RopeDims: 16, Tune: func(c *model.Config) {
		laterExperts(c, 6, 2, 40, 40)
		c.Rule.Scale = 2.5
		c.Rule.Groups = 3
		c.Rule.Chosen = 2
	}}},
	random: func(d *drawing) {
		d.rotatePart()
		d.groups()
		d.tune(func(c *model.Config) { c.HeadNorms = false })
	},
}

var afmoe = family{
	arch: "afmoe", mixed: true,
	named: []Shape{{Name: "tiny-afmoe", Layers: 5, Tune: func(c *model.Config) {
		c.SetWindow(70)
		laterExperts(c, 8, 3, 64, 64)
		c.Dense = 2
		c.Rule.Norm = true
		c.Rule.Scale = 2.5
	}}},
	small: []Shape{{Tune: func(c *model.Config) {
		c.SetWindow(4)
		laterExperts(c, 6, 2, 40, 40)
		c.Rule.Norm = true
		c.Rule.Scale = 2.5
	}}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.groups()
		d.window(true)
		d.tune(func(c *model.Config) {
			c.Rule.Norm = true
			c.Rule.Groups, c.Rule.Chosen = 0, 0
			c.HeadNorms = false
		})
	},
}

var minimaxM2 = family{
	arch: "minimax-m2",
	named: []Shape{{Name: "tiny-minimax-m2", HeadDim: 48, FFN: 96, NormEps: 1e-6, RopeBase: 5e6, RopeDims: 24,
		Tune: sparse(11, 3)}},
	small: []Shape{{RopeBase: 5e6, RopeDims: 24, Tune: sparse(5, 2)}},
	random: func(d *drawing) {
		d.rotatePart()
		d.scalePositions()
		d.experts()
	},
}

var hunyuanMoE = family{
	arch:  "hunyuan-moe",
	named: []Shape{{Name: "tiny-hunyuan-moe", HeadDim: 48, FFN: 96, Tied: true, Tune: sharedToo(11, 3)}},
	small: []Shape{{HeadDim: 48, Tied: true, Tune: sharedToo(5, 2)}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.scalePositions()
		d.experts()
		d.tune(func(c *model.Config) { c.SharedFFN = c.FFN })
	},
}

// sharedToo gives layers experts and, of the same width, one that all rows have.
func sharedToo(experts, used int) func(c *model.Config) {
	return func(c *model.Config) {
		c.Experts, c.Used = experts, used
		c.SharedFFN = c.FFN
	}
}

var mimo2 = family{
	arch: "mimo2", mixed: true,
	named: []Shape{{Name: "tiny-mimo2", Layers: 5, Heads: 8, HeadDim: 48, RopeBase: 5e6, RopeDims: 16,
		Tune: func(c *model.Config) {
			c.SetWindow(70)
			c.Windowed = []bool{false, true, true, false, true}
			mimoExperts(c, 24)
		}}},
	small: []Shape{{NormEps: 1e-5, RopeDims: 24, Tune: func(c *model.Config) {
		windowFirst(c)
		mimoExperts(c, 24)
	}}},
	random: func(d *drawing) {
		d.rotatePart()
		d.groups()
		d.s.Heads, d.s.Tied = 2*d.s.Heads, false
		size, values := 1+d.skewed(90, 900), 1+d.IntN(d.s.HeadDim)
		windowed := make([]bool, d.s.Layers)
		for i := range windowed {
			windowed[i] = d.IntN(2) == 0
		}
		if d.unit > 1 {
			values = d.s.HeadDim
		}
		alike := d.IntN(2) == 0
		d.tune(func(c *model.Config) {
			c.SetWindow(size)
			c.Windowed = windowed
			c.ValueDim, c.ValueScale = values, 0.5
			c.Rule.Sigmoid = true
			c.SharedFFN, c.HeadNorms = 0, false
			c.LocalKVHeads = 0
			if !alike {
				c.LocalKVHeads = 2 * c.KVHeads
			}
		})
	},
}

// mimoExperts gives a model MiMo-V2's experts and heads.
func mimoExperts(c *model.Config, values int) {
	c.Experts, c.Used = 8, 3
	c.ExpertFFN, c.Dense = 64, 1
	c.Rule.Sigmoid, c.Rule.Norm = true, true
	c.LocalKVHeads = 2 * c.KVHeads
	c.ValueDim, c.ValueScale = values, 0.707
}

var laguna = family{
	arch: "laguna", mixed: true,
	named: []Shape{
		{Name: "tiny-laguna", Layers: 5, Heads: 4, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 16,
			Tune: func(c *model.Config) {
				c.SetWindow(70)
				lagunaExperts(c)
				c.LocalHeads, c.HeadGates = 6, true
				yarn(c, 8, 48)
			}},
		{Name: "tiny-laguna-full", Heads: 4, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 16, Tune: lagunaExperts},
	},
	small: []Shape{{RopeDims: 24, Tune: func(c *model.Config) {
		windowFirst(c)
		lagunaExperts(c)
		c.HeadGates = true
	}}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.rotatePart()
		d.groups()
		d.window(d.IntN(3) > 0)
		d.scalePositions()
		gates, heads := d.IntN(2) == 0, d.s.KVHeads*(1+d.IntN(3))
		d.tune(func(c *model.Config) {
			c.Rule.Norm = true
			c.Rule.Groups, c.Rule.Chosen = 0, 0
			c.HeadNorms, c.HeadGates = false, gates
			if c.Window > 0 && heads != c.Heads && d.unit == 1 {
				c.LocalHeads = heads
			}
		})
	},
}

func lagunaExperts(c *model.Config) {
	laterExperts(c, 8, 3, 64, 96)
	c.Rule.Scale = 1.25
}

var step35 = family{
	arch: "step35", mixed: true,
	named: []Shape{{Name: "tiny-step35", Layers: 5, Heads: 4, RopeBase: 5e6, RopeDims: 16,
		Llama3: &Llama3Rope{Factor: 2, Low: 1, High: 32, Original: 128}, Tune: func(c *model.Config) {
			c.SetWindow(70)
			stepExperts(c)
			c.LocalHeads = 6
		}}},
	small: []Shape{{NormEps: 1e-5, RopeDims: 16, Tune: func(c *model.Config) {
		windowFirst(c)
		stepExperts(c)
	}}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.s.Tied, d.s.RopeDims = false, max(2, d.s.HeadDim/4*2)
		d.groups()
		d.window(true)
		heads, cut := d.s.KVHeads*(1+d.IntN(3)), float32(d.factor())
		d.tune(func(c *model.Config) {
			c.Rule.Norm = true
			c.Rule.Groups, c.Rule.Chosen = 0, 0
			c.HeadNorms = false
			c.Limits, c.SharedLimits = make([]float32, c.Layers), make([]float32, c.Layers)
			for i := range c.Layers {
				c.Limits[i], c.SharedLimits[i] = float32(i%2)*cut, float32(i%3)*cut
			}
			if heads != c.Heads && d.unit == 1 {
				c.LocalHeads = heads
			}
		})
	},
}

func stepExperts(c *model.Config) {
	lagunaExperts(c)
	c.Rule.Norm = true
	c.Limits, c.SharedLimits = make([]float32, c.Layers), make([]float32, c.Layers)
	c.SharedLimits[0] = 1.5
	c.Limits[c.Layers-1], c.SharedLimits[c.Layers-1] = 1, 0.75
}

var smallthinker = family{
	arch: "smallthinker", mixed: true,
	named: []Shape{
		{Name: "tiny-smallthinker", HeadDim: 48, FFN: 96, Context: 8192, NormEps: 1e-6, RopeBase: 1.5e6,
			Tune: func(c *model.Config) {
				c.SetWindow(4096) // llama.cpp has no other
				sparse(11, 3)(c)
				c.Rule = nn.Rule{Sigmoid: true, Norm: true}
			}},
		{Name: "tiny-smallthinker-full", HeadDim: 48, FFN: 96, NormEps: 1e-6, RopeBase: 1.5e6, Tied: true,
			Tune: sparse(11, 3)},
	},
	small: []Shape{{HeadDim: 48, Tied: true, Tune: func(c *model.Config) {
		c.SetWindow(4)
		sparse(5, 2)(c)
		c.Rule = nn.Rule{Sigmoid: true, Norm: true}
	}}},
	random: func(d *drawing) {
		d.window(d.IntN(3) > 0)
		d.scalePositions()
		d.experts()
		sigmoid := d.IntN(2) == 0
		d.tune(func(c *model.Config) { c.Rule = nn.Rule{Sigmoid: sigmoid, Norm: sigmoid} })
	},
}

var hyV3 = family{
	arch: "hy_v3",
	named: []Shape{{Name: "tiny-hy3", Layers: 4, RopeBase: 11158840, Tune: func(c *model.Config) {
		laterExperts(c, 8, 3, 64, 64)
		c.Rule.Scale = 2.75
	}}},
	small: []Shape{{RopeBase: 11158840, Tune: func(c *model.Config) { laterExperts(c, 6, 2, 40, 40) }}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.scalePositions()
		d.groups()
		d.tune(func(c *model.Config) {
			c.Rule.Groups, c.Rule.Chosen = 0, 0
			c.Rule.Norm, c.HeadNorms = true, false
		})
	},
}

var exaoneMoE = family{
	arch: "exaone-moe", mixed: true,
	named: []Shape{{Name: "tiny-exaone-moe", Layers: 5, RopeBase: 1e6, Tune: func(c *model.Config) {
		c.SetWindow(70)
		laterExperts(c, 8, 3, 64, 64)
		c.Rule.Norm = true
		c.Rule.Scale = 2.5
	}}},
	small: []Shape{{Tune: func(c *model.Config) {
		windowFirst(c)
		laterExperts(c, 6, 2, 40, 40)
		c.Rule.Scale = 2.5
		c.Rule.Groups = 3
		c.Rule.Chosen = 2
	}}},
	random: func(d *drawing) {
		d.window(d.IntN(3) > 0)
		d.scalePositions()
		d.groups()
		d.tune(func(c *model.Config) { c.HeadNorms = false })
	},
}

var llama4 = family{
	arch: "llama4", mixed: true,
	named: []Shape{{Name: "tiny-llama4", Layers: 5, RopeBase: 5e5, Tokens: Llama3,
		Llama3: &Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 128}, Tune: func(c *model.Config) {
			tuneLlama4(c, 2, 24)
			c.Temper.Length = 30
		}}},
	small: []Shape{{HeadDim: 48, NormEps: 1e-5, RopeBase: 5e5, Tied: true, Tune: func(c *model.Config) {
		tuneLlama4(c, 2, 4)
		c.ExpertFFN, c.SharedFFN = 40, 40
		c.Temper.Length = 3
	}}},
	random: func(d *drawing) {
		d.experts()
		every, chunk := 1+d.IntN(d.s.Layers), 1+d.skewed(90, 900)
		length, width := 1+d.IntN(90), d.width(90)
		norms := d.IntN(2) == 0
		d.tune(func(c *model.Config) {
			experts, used := c.Experts, c.Used
			tuneLlama4(c, every, chunk)
			c.Experts, c.Used = experts, used
			c.ExpertFFN, c.SharedFFN = width, width
			c.Temper.Length = length
			c.HeadNorms = norms || c.Experts != 128
		})
	},
}

func tuneLlama4(c *model.Config, every, chunk int) {
	c.Experts, c.Used = 5, 2
	c.ExpertFFN, c.SharedFFN = 64, 64
	c.Every = every
	c.SetWindow(chunk)
}
