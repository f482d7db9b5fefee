package synth

import "github.com/grovellm/grove/internal/model"

var starcoder2 = family{
	arch: "starcoder2",
	named: []Shape{
		{Name: "tiny-starcoder2", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 768,
			Context: 1024, NormEps: 1e-5, RopeBase: 999999, RopeDims: 32, Tied: true, Tokens: GPT2,
			Tune: func(c *model.Config) { c.SetWindow(70) }},
	},
	small: []Shape{
		{Name: "starcoder2", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(d.IntN(2) == 0)
	},
}

var phi2 = family{
	arch: "phi2",
	named: []Shape{
		{Name: "tiny-phi2", Vocab: 416, Hidden: 160, Layers: 3, Heads: 4, KVHeads: 4, HeadDim: 40, FFN: 640,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Tokens: GPT2},
	},
	small: []Shape{
		{Name: "phi2", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 2, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 16, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.rotatePart()
		d.scalePositions()
	},
}

var nemotron = family{
	arch: "nemotron",
	named: []Shape{
		{Name: "tiny-nemotron", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Tokens: SPM},
	},
	small: []Shape{
		{Name: "nemotron", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 16, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.rotatePart()
		d.scalePositions()
	},
}
