package synth

var stablelm = family{
	arch:  "stablelm",
	named: []Shape{{Name: "tiny-stablelm", Hidden: 192, RopeDims: 8, Tokens: GPT2}},
	small: []Shape{{NormEps: 1e-5, RopeDims: 24}},
	random: func(d *drawing) {
		d.rotatePart()
		d.scalePositions()
	},
}
