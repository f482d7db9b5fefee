package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var llama = family{
	arch: "llama", pairs: true,
	named: []Shape{
		{Name: "tiny-llama2", Vocab: 544, Heads: 5, KVHeads: 5, Tokens: SPM},
		{Name: "tiny-llama3", Vocab: 768, Hidden: 192, FFN: 544, Context: 2048,
			Llama3: &Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 256}, Tied: true, Tokens: Llama3},
		{Name: "tiny-mistral", Tokens: SPM, Tune: func(c *model.Config) { c.SetWindow(70) }},
		{Name: "tiny-linear", Layers: 2, Heads: 5, KVHeads: 1, Tokens: SPM, Tune: func(c *model.Config) {
			c.Rope.Scale = 2.5
		}},
		{Name: "tiny-mixtral", FFN: 224, RopeBase: 1e6, Tokens: SPM, Tune: sparse(4, 2)},
		{Name: "llama-3.2-1b", Vocab: 128256, Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192,
			Context: 131072, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 64,
			Llama3: &Llama3Rope{Factor: 32, Low: 1, High: 4, Original: 8192}, Tied: true, Tokens: Llama3},
		{Name: "llama3-8b", Vocab: 128256, Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336,
			Context: 8192, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 128, Tokens: Llama3},
		{Name: "tinyllama-1.1b", Vocab: 32000, Hidden: 2048, Layers: 22, Heads: 32, KVHeads: 4, HeadDim: 64,
			FFN: 5632, Context: 2048, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 64, Tokens: SPM},
		{Name: "smollm2-135m", Vocab: 49152, Hidden: 576, Layers: 30, Heads: 9, KVHeads: 3, HeadDim: 64, FFN: 1536,
			Context: 8192, NormEps: 1e-5, RopeBase: 1e5, RopeDims: 64, Tied: true, Tokens: GPT2},
	},
	small: []Shape{
		{Vocab: 512, NormEps: 1e-5, Tied: true, Tokens: SPM},
		{Name: "mixtral", NormEps: 1e-5, RopeBase: 1e6, Tied: true, Tokens: SPM, Tune: sparse(5, 2)},
	},
	random: func(d *drawing) {
		if d.IntN(2) == 0 {
			d.s.Llama3 = &Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 64}
		}
		d.scalePositions()
		d.window(d.IntN(4) > 0)
		if d.IntN(3) == 0 {
			d.experts()
		}
	},
}

var nanbeige = family{
	arch: "nanbeige", pairs: true,
	named: []Shape{{Name: "tiny-nanbeige", Hidden: 192, Layers: 2, HeadDim: 48, RopeBase: 1e5, Tokens: SPM,
		Tune: looped(2, false)}},
	small: []Shape{{NormEps: 1e-5, Tied: true, Tokens: SPM, Tune: looped(2, false)}},
	random: func(d *drawing) {
		d.scalePositions()
		d.tune(looped(1+d.IntN(3), d.IntN(4) == 0))
	},
}

// looped has rows pass the layers several times.
func looped(times int, unnormed bool) func(c *model.Config) {
	return func(c *model.Config) {
		c.Layers *= times
		c.Loops, c.Unnormed = times, unnormed
	}
}
