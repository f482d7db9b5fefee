package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var qwen2 = family{
	arch: "qwen2",
	named: []Shape{
		{Name: "tiny-qwen2", Vocab: 640, Hidden: 224, Heads: 7, KVHeads: 1, FFN: 608, NormEps: 1e-6, RopeBase: 1e6},
		{Name: "tiny-yarn", Hidden: 192, NormEps: 1e-6, RopeBase: 1e6, Tune: func(c *model.Config) { yarn(c, 4, 64) }},
		{Name: "qwen2.5-0.5b", Vocab: 151936, Hidden: 896, Layers: 24, Heads: 14, KVHeads: 2, HeadDim: 64, FFN: 4864,
			Context: 32768, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 64, Tied: true, Tokens: Qwen2},
	},
	small:  []Shape{{Tied: true}},
	random: (*drawing).scalePositions,
}

var qwen3 = family{
	arch: "qwen3",
	named: []Shape{
		{Name: "tiny-qwen3", Vocab: 1000, Layers: 4, HeadDim: 64, FFN: 480, NormEps: 1e-6, RopeBase: 1e6, Tied: true},
		{Name: "tiny-qwen3-untied", Vocab: 512, Hidden: 128, Layers: 2, Heads: 4, KVHeads: 4, HeadDim: 48, FFN: 352,
			NormEps: 1e-6, RopeBase: 1e6},
		{Name: "qwen3-0.6b", Vocab: 151936, Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, FFN: 3072,
			Context: 40960, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 128, Tied: true, Tokens: Qwen2},
		{Name: "qwen3-1.7b", Vocab: 151936, Hidden: 2048, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, FFN: 6144,
			Context: 40960, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 128, Tied: true, Tokens: Qwen2},
	},
	small:  []Shape{{HeadDim: 48}},
	random: (*drawing).scalePositions,
}
