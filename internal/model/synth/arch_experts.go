package synth

import (
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

var qwen3MoE = family{
	arch: "qwen3moe",
	named: []Shape{
		{Name: "tiny-qwen3moe", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 96,
			Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: sparse(11, 3)},
		{Name: "qwen3-30b-a3b-4-layers", Vocab: 151936, Hidden: 2048, Layers: 4, Heads: 32, KVHeads: 4, HeadDim: 128,
			FFN: 768, Context: 40960, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 128, Tokens: Qwen2, Tune: sparse(128, 8)},
	},
	small: []Shape{
		{Name: "qwen3moe", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: sparse(5, 2)},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.experts()
	},
}

var mellum = family{
	arch: "mellum", mixed: true,
	named: []Shape{
		{Name: "tiny-mellum", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 96,
			Context: 1024, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 48, Tokens: GPT2, Tune: func(c *model.Config) {
				c.Experts, c.Used = 11, 3
				c.Rope.Scale = 2
				c.Rope.Original = 64
				c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
				c.SetWindow(70)
				c.Windowed = []bool{true, true, false}
				c.LocalRope.Base = 1e4
			}},
	},
	small: []Shape{
		{Name: "mellum", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts, c.Used = 5, 2
				windowFirst(c)
			}},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.experts()
		d.window(d.IntN(4) > 0)
	},
}

var olmoe = family{
	arch: "olmoe",
	named: []Shape{
		{Name: "tiny-olmoe", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 6, HeadDim: 32, FFN: 96,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: GPT2, Tune: sparse(12, 4)},
	},
	small: []Shape{
		{Name: "olmoe", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: Qwen2, Tune: sparse(5, 2)},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.experts()
	},
}

var ernie45MoE = family{
	arch: "ernie4_5-moe",
	named: []Shape{
		{Name: "tiny-ernie4_5-moe", Vocab: 416, Hidden: 160, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 384,
			Context: 1024, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 48, Tied: true, Tokens: SPM, Tune: func(c *model.Config) {
				c.Experts = 8
				c.Used = 3
				c.ExpertFFN = 96
				c.SharedFFN = 192 // llama.cpp's converter derives it from the width and the key/value heads
				c.Dense = 1
			}},
	},
	small: []Shape{
		{Name: "ernie4_5-moe", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts = 6
				c.Used = 2
				c.ExpertFFN = 48
				c.SharedFFN = 96
				c.Dense = 1
			}},
	},
	random: func(d *drawing) {
		d.groups()
		d.scalePositions()
		d.tune(func(c *model.Config) {
			c.Rule = nn.Rule{All: true, Norm: true}
			c.HeadNorms = false
		})
	},
}

var bailing2 = family{
	arch: "bailingmoe2",
	named: []Shape{
		{Name: "tiny-bailingmoe2", Vocab: 416, Hidden: 160, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 40, FFN: 416,
			Context: 1024, NormEps: 1e-6, RopeBase: 6e5, RopeDims: 20, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts = 8
				c.Used = 3
				c.ExpertFFN = 64
				c.SharedFFN = 64
				c.Dense = 1
				c.Rule.Norm = true
				c.Rule.Scale = 2.5
				c.Rule.Groups = 4
				c.Rule.Chosen = 2
			}},
	},
	small: []Shape{
		{Name: "bailingmoe2", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 16, Tokens: Qwen2, Tune: func(c *model.Config) {
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
		d.rotatePart()
		d.groups()
		d.tune(func(c *model.Config) { c.HeadNorms = false })
	},
}

var afmoe = family{
	arch: "afmoe", mixed: true,
	named: []Shape{
		{Name: "tiny-afmoe", Vocab: 416, Hidden: 160, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.SetWindow(70)
				c.Experts = 8
				c.Used = 3
				c.ExpertFFN = 64
				c.SharedFFN = 64
				c.Dense = 2
				c.Rule.Norm = true
				c.Rule.Scale = 2.5
			}},
	},
	small: []Shape{
		{Name: "afmoe", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.SetWindow(4)
				c.Experts = 6
				c.Used = 2
				c.ExpertFFN = 40
				c.SharedFFN = 40
				c.Dense = 1
				c.Rule.Norm = true
				c.Rule.Scale = 2.5
			}},
	},
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
	named: []Shape{
		{Name: "tiny-minimax-m2", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 96,
			Context: 1024, NormEps: 1e-6, RopeBase: 5e6, RopeDims: 24, Tokens: Qwen2, Tune: sparse(11, 3)},
	},
	small: []Shape{
		{Name: "minimax-m2", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 5e6, RopeDims: 24, Tokens: Qwen2, Tune: sparse(5, 2)},
	},
	random: func(d *drawing) {
		d.rotatePart()
		d.scalePositions()
		d.experts()
	},
}

var hunyuanMoE = family{
	arch: "hunyuan-moe",
	named: []Shape{
		{Name: "tiny-hunyuan-moe", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 96,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: sharedToo(11, 3)},
	},
	small: []Shape{
		{Name: "hunyuan-moe", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: sharedToo(5, 2)},
	},
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
	named: []Shape{
		{Name: "tiny-mimo2", Vocab: 416, Hidden: 160, Layers: 5, Heads: 8, KVHeads: 2, HeadDim: 48, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 5e6, RopeDims: 16, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.SetWindow(70)
				c.Windowed = []bool{false, true, true, false, true}
				mimoExperts(c, 24)
			}},
	},
	small: []Shape{
		{Name: "mimo2", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 24, Tokens: Qwen2, Tune: func(c *model.Config) {
				windowFirst(c)
				mimoExperts(c, 24)
			}},
	},
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
		{Name: "tiny-laguna", Vocab: 416, Hidden: 160, Layers: 5, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 16, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.SetWindow(70)
				lagunaExperts(c)
				c.LocalHeads, c.HeadGates = 6, true
				c.Rope.Scale = 8
				c.Rope.Original = 48
				c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
			}},
		{Name: "tiny-laguna-full", Vocab: 416, Hidden: 160, Layers: 3, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 16, Tokens: Qwen2, Tune: lagunaExperts},
	},
	small: []Shape{
		{Name: "laguna", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 24, Tokens: Qwen2, Tune: func(c *model.Config) {
				windowFirst(c)
				lagunaExperts(c)
				c.HeadGates = true
			}},
	},
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
	c.Experts, c.Used = 8, 3
	c.ExpertFFN, c.SharedFFN = 64, 96
	c.Dense = 1
	c.Rule.Scale = 1.25
}

var smallthinker = family{
	arch: "smallthinker", mixed: true,
	named: []Shape{
		{Name: "tiny-smallthinker", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 96,
			Context: 8192, NormEps: 1e-6, RopeBase: 1.5e6, RopeDims: 48, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.SetWindow(4096) // llama.cpp has no other
				sparse(11, 3)(c)
				c.Rule = nn.Rule{Sigmoid: true, Norm: true}
			}},
		{Name: "tiny-smallthinker-full", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 96,
			Context: 1024, NormEps: 1e-6, RopeBase: 1.5e6, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: sparse(11, 3)},
	},
	small: []Shape{
		{Name: "smallthinker", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.SetWindow(4)
				sparse(5, 2)(c)
				c.Rule = nn.Rule{Sigmoid: true, Norm: true}
			}},
	},
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
	named: []Shape{
		{Name: "tiny-hy3", Vocab: 416, Hidden: 160, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 11158840, RopeDims: 32, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts, c.Used = 8, 3
				c.ExpertFFN, c.SharedFFN = 64, 64
				c.Dense = 1
				c.Rule.Scale = 2.75
			}},
	},
	small: []Shape{
		{Name: "hy_v3", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 11158840, RopeDims: 32, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.Experts, c.Used = 6, 2
				c.ExpertFFN, c.SharedFFN = 40, 40
				c.Dense = 1
			}},
	},
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
	named: []Shape{
		{Name: "tiny-exaone-moe", Vocab: 416, Hidden: 160, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.SetWindow(70)
				c.Experts = 8
				c.Used = 3
				c.ExpertFFN = 64
				c.SharedFFN = 64
				c.Dense = 1
				c.Rule.Norm = true
				c.Rule.Scale = 2.5
			}},
	},
	small: []Shape{
		{Name: "exaone-moe", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tokens: Qwen2, Tune: func(c *model.Config) {
				windowFirst(c)
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
		d.window(d.IntN(3) > 0)
		d.scalePositions()
		d.groups()
		d.tune(func(c *model.Config) { c.HeadNorms = false })
	},
}

var llama4 = family{
	arch: "llama4", mixed: true,
	named: []Shape{
		{Name: "tiny-llama4", Vocab: 416, Hidden: 160, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 32, Tokens: Llama3,
			Llama3: &Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 128}, Tune: func(c *model.Config) {
				tuneLlama4(c, 2, 24)
				c.Temper.Length = 30
			}},
	},
	small: []Shape{
		{Name: "llama4", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: func(c *model.Config) {
				tuneLlama4(c, 2, 4)
				c.ExpertFFN, c.SharedFFN = 40, 40
				c.Temper.Length = 3
			}},
	},
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
