package synth

import (
	"slices"

	"github.com/grovellm/grove/internal/model"
)

var gemma4 = family{
	arch: "gemma4", fewest: 2, mixed: true,
	named: []Shape{
		{Name: "tiny-gemma4", Hidden: 96, Layers: 6, Heads: 4, HeadDim: 48, FFN: 160, NormEps: 1e-6, RopeBase: 1e6,
			Tied: true, Tokens: SPM, Tune: func(c *model.Config) {
				c.SetGemma4Layers(24, 2)
				c.Windowed = []bool{true, true, false, true, true, false}
				c.Window = 70
				c.Sharing = 3
				c.WideSharing = true
				c.PerLayer = 16
				c.LogitCap = 9
			}},
		{Name: "tiny-gemma4-experts", Hidden: 96, Heads: 4, KVHeads: 1, HeadDim: 48, FFN: 160, NormEps: 1e-6,
			RopeBase: 1e6, Tied: true, Tokens: SPM, Tune: func(c *model.Config) {
				c.SetGemma4Layers(24, 4)
				c.Windowed = []bool{true, true, false}
				c.Window = 70
				c.KeyValues = true
				c.Experts = 6
				c.Used = 2
				c.ExpertFFN = 56
				c.LogitCap = 9
			}},
		{Name: "gemma4-e4b", Vocab: 262144, Hidden: 2560, Layers: 42, Heads: 8, KVHeads: 2, HeadDim: 512, FFN: 10240,
			Context: 131072, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 512, Tied: true, Tokens: SPM,
			Tune: func(c *model.Config) {
				c.SetGemma4Layers(256, 2)
				c.Windowed = slices.Repeat([]bool{true, true, true, true, true, false}, 7)
				c.Window = 512
				c.Sharing = 18
				c.PerLayer = 256
				c.LogitCap = 30
			}},
	},
	small: []Shape{
		{Layers: 4, HeadDim: 48, RopeBase: 1e6, Tied: true, Tune: func(c *model.Config) {
			c.SetGemma4Layers(32, 1)
			c.Window, c.Windowed = 4, []bool{true, false, true, false}
			c.Sharing = 2
			c.WideSharing = true
			c.PerLayer = 8
		}},
		{Name: "gemma4-experts", HeadDim: 48, RopeBase: 1e6, Tied: true, Tune: func(c *model.Config) {
			c.SetGemma4Layers(32, 2)
			c.Window, c.Windowed = 4, []bool{true, false}
			c.KeyValues = true
			c.Experts = 5
			c.Used = 2
			c.ExpertFFN = 40
		}},
	},
	random: drawGemma4,
}

// drawGemma4 draws layers with and without a window, which differ in their heads, layers that read
// other layers' keys and values, and experts or tables.
func drawGemma4(d *drawing) {
	s := d.s
	windowed := make([]bool, s.Layers)
	for i := range windowed[:s.Layers-1] {
		windowed[i] = i == 0 || d.IntN(3) > 0
	}
	size, experts := 1+d.skewed(90, 900), d.IntN(6)
	used, width := 1+d.IntN(max(1, experts)), d.width(90)
	heads, dim := s.KVHeads, s.HeadDim
	values := d.IntN(2) == 0
	if values {
		heads = s.Heads
	}
	if d.unit < 256 && s.HeadDim%4 == 0 && d.unit*s.Heads <= s.HeadDim*s.Heads/2 {
		dim = s.HeadDim / 2
	}
	sharing := d.IntN(s.Layers)
	wide := d.IntN(2) == 0
	perLayer := d.IntN(2) * d.width(30)
	d.tune(func(c *model.Config) {
		c.SetGemma4Layers(dim, heads)
		c.Window = size
		c.Windowed = windowed
		c.KeyValues = values
		c.PerLayer = perLayer
		if experts > 0 {
			c.Experts = experts
			c.Used = used
			c.ExpertFFN = width
			return
		}
		for n := c.Layers - sharing; n < c.Layers; n++ { // the rest has both kinds
			if slices.Contains(windowed[:n], true) && slices.Contains(windowed[:n], false) {
				c.Sharing, c.WideSharing = c.Layers-n, wide
				return
			}
		}
	})
}

var gemma3n = family{
	arch: "gemma3n", fewest: 2, mixed: true,
	named: []Shape{
		{Name: "tiny-gemma3n", Hidden: 96, Layers: 7, Heads: 4, HeadDim: 24, FFN: 160, NormEps: 1e-6, RopeBase: 1e6,
			Tied: true, Tokens: SPM, Tune: func(c *model.Config) {
				c.SetWindow(70)
				c.Sharing = 2
				c.PerLayer = 16
				c.Laurel = 20
				c.LogitCap = 9
				c.SetSparsity([]float64{0.95, 0.8, 0.3})
			}},
		{Name: "gemma-3n-e2b", Vocab: 262400, Hidden: 2048, Layers: 30, Heads: 8, KVHeads: 2, HeadDim: 256, FFN: 8192,
			Context: 32768, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 256, Tied: true, Tokens: SPM,
			Tune: func(c *model.Config) {
				c.SetWindow(512)
				c.Sharing = 10
				c.PerLayer = 256
			}},
	},
	small: []Shape{{Layers: 4, RopeBase: 1e6, Tied: true, Tune: func(c *model.Config) {
		c.SetWindow(4)
		c.Windowed = []bool{true, false, true, false}
		c.Sharing = 2
		c.PerLayer = 8
		c.Streams = 3
		c.Laurel = 12
		c.SetSparsity([]float64{0.9})
	}}},
	random: func(d *drawing) {
		windowed := make([]bool, d.s.Layers)
		for i := range windowed {
			windowed[i] = d.IntN(3) > 0
		}
		size, sharing := 1+d.skewed(90, 900), d.IntN(d.s.Layers)
		shares := make([]float64, d.s.Layers)
		for i := range shares {
			shares[i] = []float64{0, 0.2, 0.5, 0.95}[d.IntN(4)]
		}
		perLayer, laurel := d.width(30), d.width(40)
		streams := 2 + d.IntN(4)
		d.tune(func(c *model.Config) {
			c.SetWindow(size)
			c.Windowed = windowed
			c.PerLayer, c.Laurel = perLayer, laurel
			c.Streams = streams
			c.SetSparsity(shares)
			for n := c.Layers - sharing; n < c.Layers; n++ { // the rest has both kinds
				if slices.Contains(windowed[:n], true) && slices.Contains(windowed[:n], false) {
					c.Sharing = c.Layers - n
					return
				}
			}
		})
	},
}
