package synth

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
