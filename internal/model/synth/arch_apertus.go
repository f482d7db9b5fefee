package synth

import (
	"github.com/grovellm/grove/internal/model"
)

var apertus = family{
	arch: "apertus",
	named: []Shape{{Name: "tiny-apertus", Hidden: 192, RopeBase: 1e6,
		Llama3: &Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 128}, Tokens: GPT2, Tune: func(c *model.Config) {
			c.XIELU = [][4]float32{{0.25, -1, 0.5, -1e-6}, {-0.5, 0.125, 0.5, -1e-6}, {0.75, -0.375, 0.25, -0.03125}}
		}}},
	small:  []Shape{{HeadDim: 48, Tied: true}},
	random: (*drawing).scalePositions,
}
