package synth

var stablelm = family{
	arch: "stablelm",
	named: []Shape{
		{Name: "tiny-stablelm", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 8, Tokens: GPT2},
	},
	small: []Shape{
		{Name: "stablelm", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 24, Tokens: Qwen2},
	},
	random: func(d *drawing) {
		d.rotatePart()
		d.scalePositions()
	},
}
