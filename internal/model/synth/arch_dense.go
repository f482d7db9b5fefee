package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var seedOSS = family{
	arch: "seed_oss",
	named: []Shape{
		{Name: "tiny-seed-oss", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
			Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 48, Biases: true, Tokens: Qwen2},
	},
	small: []Shape{
		{Name: "seed_oss", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.s.Biases = d.IntN(2) == 0
		d.scalePositions()
	},
}

var pangu = family{
	arch: "pangu-embedded",
	named: []Shape{
		{Name: "tiny-pangu", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 16e6, RopeDims: 48, Tokens: SPM},
	},
	small: []Shape{
		{Name: "pangu-embedded", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 16e6, RopeDims: 48, Tied: true, Tokens: SPM},
	},
	random: (*drawing).scalePositions,
}

var hunyuan = family{
	arch: "hunyuan-dense",
	named: []Shape{
		{Name: "tiny-hunyuan", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
			Context: 262144, NormEps: 1e-5, RopeBase: 13503140, RopeDims: 48, Tied: true, Tokens: Qwen2},
	},
	small: []Shape{
		{Name: "hunyuan-dense", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: Qwen2},
	},
	random: (*drawing).scalePositions,
}

var maincoder = family{
	arch: "maincoder",
	named: []Shape{
		{Name: "tiny-maincoder", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 48, Tied: true, Tokens: Qwen2},
	},
	small: []Shape{
		{Name: "maincoder", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 48, Tied: true, Tokens: Qwen2},
	},
	random: (*drawing).scalePositions,
}

var ernie45 = family{
	arch: "ernie4_5",
	named: []Shape{
		{Name: "tiny-ernie4_5", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 48, Tied: true, Tokens: SPM},
	},
	small: []Shape{
		{Name: "ernie4_5", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 48, Tied: true, Tokens: Qwen2},
	},
	random: (*drawing).scalePositions,
}

var arcee = family{
	arch: "arcee", pairs: true,
	named: []Shape{
		{Name: "tiny-arcee", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 48, Tokens: Llama3, Tune: func(c *model.Config) {
				c.Rope.Scale = 4
				c.Rope.Original = 128
				c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
			}},
	},
	small: []Shape{
		{Name: "arcee", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: Qwen2},
	},
	random: (*drawing).scalePositions,
}

var jais2 = family{
	arch: "jais2",
	named: []Shape{
		{Name: "tiny-jais2", Vocab: 416, Hidden: 192, Layers: 3, Heads: 4, KVHeads: 4, HeadDim: 48, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 48, Tokens: GPT2},
	},
	small: []Shape{
		{Name: "jais2", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 2, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.s.KVHeads = d.s.Heads
		d.scalePositions()
	},
}

var bitnet = family{
	arch: "bitnet-b1.58",
	named: []Shape{
		{Name: "tiny-bitnet", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 32, Tied: true, Tokens: Llama3},
		{Name: "bitnet-2b-4-layers", Vocab: 128256, Hidden: 2560, Layers: 4, Heads: 20, KVHeads: 5, HeadDim: 128, FFN: 6912,
			Context: 4096, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 128, Tied: true, Tokens: Llama3},
	},
	small: []Shape{
		{Name: "bitnet", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 32, Tied: true, Tokens: Qwen2},
	},
	random: drawBitnet,
}

var bitnetSiLU = family{
	arch: "bitnet",
	named: []Shape{
		{Name: "tiny-bitnet-silu", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 6, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: SPM},
	},
	random: drawBitnet,
}

func drawBitnet(d *drawing) {
	d.s.Biases = d.IntN(2) == 0
	d.scalePositions()
}

var commandR = family{
	arch: "command-r",
	named: []Shape{
		{Name: "tiny-command-r", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 4e6, RopeDims: 32, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
				c.LogitScale = 4
			}},
		{Name: "tiny-command-r-plus", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 75e6, RopeDims: 32, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
				c.LogitScale = 2
				c.HeadNorms = true
			}},
	},
	small: []Shape{
		{Name: "command-r", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 32, Tied: true, Tokens: Qwen2},
		{Name: "command-r-plus", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 32, Tied: true, Tokens: Qwen2, Tune: func(c *model.Config) {
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
	named: []Shape{
		{Name: "tiny-cohere2", Vocab: 416, Hidden: 192, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 5e4, RopeDims: 32, Tied: true, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.SetWindow(70)
				c.LogitScale = 4
			}},
	},
	small: []Shape{
		{Name: "cohere2", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 48, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: func(c *model.Config) {
				c.SetWindow(4)
			}},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(true)
	},
}

var exaone = family{
	arch: "exaone",
	named: []Shape{
		{Name: "tiny-exaone", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Llama3: &Llama3Rope{Factor: 8, Low: 1,
				High: 4, Original: 128},
			Tied: true, Tokens: GPT2},
	},
	small: []Shape{
		{Name: "exaone", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tokens: Qwen2},
	},
	random: (*drawing).scalePositions,
}

var internlm2 = family{
	arch: "internlm2", pairs: true,
	named: []Shape{
		{Name: "tiny-internlm2", Vocab: 420, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Tokens: SPM},
	},
	small: []Shape{
		{Name: "internlm2", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tokens: Qwen2},
	},
	random: (*drawing).scalePositions,
}

var exaone4 = family{
	arch: "exaone4", mixed: true,
	named: []Shape{
		{Name: "tiny-exaone4", Vocab: 416, Hidden: 192, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Llama3: &Llama3Rope{Factor: 16, Low: 1,
				High: 4, Original: 128},
			Tokens: GPT2, Tune: func(c *model.Config) { c.SetWindow(70) }},
		{Name: "tiny-exaone4-full", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Llama3: &Llama3Rope{Factor: 16, Low: 1,
				High: 4, Original: 128},
			Tied: true, Tokens: GPT2},
	},
	small: []Shape{
		{Name: "exaone4", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: Qwen2, Tune: windowFirst},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(d.IntN(4) > 0)
	},
}
