package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var seedOSS = family{
	arch:  "seed_oss",
	named: []Shape{{Name: "tiny-seed-oss", HeadDim: 48, NormEps: 1e-6, RopeBase: 1e6, Biases: true}},
	small: []Shape{{HeadDim: 48, Tied: true}},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.scalePositions()
	},
}

var pangu = family{
	arch:   "pangu-embedded",
	named:  []Shape{{Name: "tiny-pangu", Hidden: 192, HeadDim: 48, RopeBase: 16e6, Tokens: SPM}},
	small:  []Shape{{HeadDim: 48, RopeBase: 16e6, Tied: true, Tokens: SPM}},
	random: (*drawing).scalePositions,
}

var hunyuan = family{
	arch:   "hunyuan-dense",
	named:  []Shape{{Name: "tiny-hunyuan", HeadDim: 48, Context: 262144, RopeBase: 13503140, Tied: true}},
	small:  []Shape{{HeadDim: 48, Tied: true}},
	random: (*drawing).scalePositions,
}

var maincoder = family{
	arch:   "maincoder",
	named:  []Shape{{Name: "tiny-maincoder", HeadDim: 48, RopeBase: 1e6, Tied: true}},
	small:  []Shape{{HeadDim: 48, RopeBase: 1e6, Tied: true}},
	random: (*drawing).scalePositions,
}

var ernie45 = family{
	arch:   "ernie4_5",
	named:  []Shape{{Name: "tiny-ernie4_5", HeadDim: 48, RopeBase: 5e5, Tied: true, Tokens: SPM}},
	small:  []Shape{{HeadDim: 48, RopeBase: 5e5, Tied: true}},
	random: (*drawing).scalePositions,
}

var arcee = family{
	arch: "arcee", pairs: true,
	named: []Shape{{Name: "tiny-arcee", Hidden: 192, HeadDim: 48, Tokens: Llama3,
		Tune: func(c *model.Config) { yarn(c, 4, 128) }}},
	small:  []Shape{{HeadDim: 48, Tied: true}},
	random: (*drawing).scalePositions,
}

var jais2 = family{
	arch:  "jais2",
	named: []Shape{{Name: "tiny-jais2", Hidden: 192, Heads: 4, KVHeads: 4, HeadDim: 48, RopeBase: 5e5, Tokens: GPT2}},
	small: []Shape{{KVHeads: 2, Tied: true}},
	random: func(d *drawing) {
		d.s.KVHeads = d.s.Heads
		d.scalePositions()
	},
}

var bitnet = family{
	arch: "bitnet-b1.58",
	named: []Shape{
		{Name: "tiny-bitnet", Hidden: 192, RopeBase: 5e5, Tied: true, Tokens: Llama3},
		{Name: "bitnet-2b-4-layers", Vocab: 128256, Hidden: 2560, Layers: 4, Heads: 20, KVHeads: 5, HeadDim: 128,
			FFN: 6912, Context: 4096, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 128, Tied: true, Tokens: Llama3},
	},
	small:  []Shape{{Name: "bitnet", RopeBase: 5e5, Tied: true}},
	random: drawBitnet,
}

var bitnetSiLU = family{
	arch:   "bitnet",
	named:  []Shape{{Name: "tiny-bitnet-silu", Hidden: 192, KVHeads: 6, Tied: true, Tokens: SPM}},
	random: drawBitnet,
}

func drawBitnet(d *drawing) {
	d.s.Biases = d.IntN(2) == 0
	d.scalePositions()
}

var commandR = family{
	arch: "command-r",
	named: []Shape{
		{Name: "tiny-command-r", Hidden: 192, RopeBase: 4e6, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
			c.LogitScale = 4
		}},
		{Name: "tiny-command-r-plus", Hidden: 192, RopeBase: 75e6, Tied: true, Tokens: GPT2,
			Tune: func(c *model.Config) {
				c.LogitScale = 2
				c.HeadNorms = true
			}},
	},
	small: []Shape{
		{RopeBase: 5e5, Tied: true},
		{Name: "command-r-plus", RopeBase: 5e5, Tied: true, Tune: func(c *model.Config) {
			c.LogitScale = 3
			c.HeadNorms = true
		}},
	},
	random: func(d *drawing) {
		norms := d.IntN(2) == 0
		d.tune(func(c *model.Config) { c.HeadNorms = norms })
		d.scalePositions()
	},
}

var cohere2 = family{
	arch: "cohere2", mixed: true,
	named: []Shape{{Name: "tiny-cohere2", Hidden: 192, Layers: 5, RopeBase: 5e4, Tied: true,
		Tune: func(c *model.Config) {
			c.SetWindow(70)
			c.LogitScale = 4
		}}},
	small: []Shape{{HeadDim: 48, Tied: true, Tune: func(c *model.Config) { c.SetWindow(4) }}},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(true)
	},
}

var cohere2MoE = family{
	arch: "cohere2moe", mixed: true,
	named: []Shape{
		{Name: "tiny-cohere2moe", Hidden: 192, Layers: 6, RopeBase: 5e4, Tied: true, Tune: func(c *model.Config) {
			laterExperts(c, 8, 3, 96, 192)
			c.SetWindow(70)
			c.LogitScale = 4
			c.Rule.Norm = true
		}},
		{Name: "tiny-cohere2moe-plain", Hidden: 192, Layers: 4, RopeBase: 5e4, Tied: true, Tune: func(c *model.Config) {
			laterExperts(c, 8, 3, 96, 0)
			c.Dense = 0
			c.SetWindow(70)
			c.Windowed = []bool{true, true, true, false}
			c.NoRope = []bool{false, false, false, true}
		}},
	},
	small: []Shape{{HeadDim: 48, Tied: true, Tune: func(c *model.Config) {
		laterExperts(c, 6, 2, 48, 48)
		windowFirst(c)
		c.NoRope = []bool{false, true}
	}}},
	random: func(d *drawing) {
		experts, width := 1+d.IntN(9), d.width(90)
		used, shared := 1+d.IntN(experts), d.IntN(3)
		dense, norm := d.IntN(d.s.Layers), d.IntN(2) == 0
		d.tune(func(c *model.Config) {
			laterExperts(c, experts, used, width, width*shared)
			c.Dense, c.Rule.Norm = dense, norm
		})
		d.scalePositions()
		d.window(true)
	},
}

var exaone = family{
	arch: "exaone",
	named: []Shape{{Name: "tiny-exaone", Hidden: 192, RopeBase: 1e6,
		Llama3: &Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 128}, Tied: true, Tokens: GPT2}},
	small:  []Shape{{}},
	random: (*drawing).scalePositions,
}

var internlm2 = family{
	arch: "internlm2", pairs: true,
	named:  []Shape{{Name: "tiny-internlm2", Vocab: 420, Hidden: 192, RopeBase: 1e6, Tokens: SPM}},
	small:  []Shape{{}},
	random: (*drawing).scalePositions,
}

var exaone4 = family{
	arch: "exaone4", mixed: true,
	named: []Shape{
		{Name: "tiny-exaone4", Hidden: 192, Layers: 5, RopeBase: 1e6,
			Llama3: &Llama3Rope{Factor: 16, Low: 1, High: 4, Original: 128}, Tokens: GPT2,
			Tune: func(c *model.Config) { c.SetWindow(70) }},
		{Name: "tiny-exaone4-full", Hidden: 192, RopeBase: 1e6,
			Llama3: &Llama3Rope{Factor: 16, Low: 1, High: 4, Original: 128}, Tied: true, Tokens: GPT2},
	},
	small: []Shape{{Tied: true, Tune: windowFirst}},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(d.IntN(4) > 0)
	},
}
