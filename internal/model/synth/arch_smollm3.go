package synth

var smollm3 = family{
	arch: "smollm3", pairs: true,
	named: []Shape{
		{Name: "tiny-smollm3", Vocab: 416, Hidden: 160, Layers: 5, Heads: 5, KVHeads: 1, HeadDim: 32, FFN: 416,
			Context: 1024, NormEps: 1e-6, RopeBase: 2e6, RopeDims: 32, Tied: true, Tokens: Llama3},
	},
	small: []Shape{
		{Name: "smollm3", Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
			Context: 64, NormEps: 1e-6, RopeBase: 2e6, RopeDims: 32, Tied: true, Tokens: Qwen2},
	},
	random: (*drawing).scalePositions,
}
