package synth

import "github.com/grovellm/grove/internal/model"

var starcoder2 = family{
	arch: "starcoder2",
	named: []Shape{{Name: "tiny-starcoder2", Hidden: 192, FFN: 768, RopeBase: 999999, Tied: true, Tokens: GPT2,
		Tune: func(c *model.Config) { c.SetWindow(70) }}},
	small: []Shape{{Tied: true}},
	random: func(d *drawing) {
		d.scalePositions()
		d.window(d.IntN(2) == 0)
	},
}

var phi2 = family{
	arch:  "phi2",
	named: []Shape{{Name: "tiny-phi2", Heads: 4, KVHeads: 4, HeadDim: 40, FFN: 640, RopeDims: 16, Tokens: GPT2}},
	small: []Shape{{KVHeads: 2, RopeDims: 16}},
	random: func(d *drawing) {
		d.rotatePart()
		d.scalePositions()
	},
}

var nemotron = family{
	arch:  "nemotron",
	named: []Shape{{Name: "tiny-nemotron", Hidden: 192, RopeDims: 16, Tokens: SPM}},
	small: []Shape{{RopeDims: 16}},
	random: func(d *drawing) {
		d.rotatePart()
		d.scalePositions()
	},
}
