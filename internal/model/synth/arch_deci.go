package synth

import "github.com/grovellm/grove/internal/model"

var deci = family{
	arch: "deci", pairs: true, mixed: true,
	named: []Shape{{Name: "tiny-deci", Hidden: 192, Layers: 6, RopeBase: 5e5,
		Llama3: &Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 128}, Tokens: Llama3, Tune: func(c *model.Config) {
			differ(c, []int{2, 3, 0, 0, 1, 0}, []int{512, 256, 512, 256, 0, 0}, 3)
		}}},
	small: []Shape{{Tune: func(c *model.Config) { differ(c, []int{1, 0}, []int{96, 32}, 1) }}},
	random: func(d *drawing) {
		heads, widths := make([]int, d.s.Layers), make([]int, d.s.Layers)
		var replaced []int
		for i := range heads {
			heads[i], widths[i] = []int{0, 1, d.s.KVHeads, d.s.Heads}[d.IntN(4)], d.IntN(3)*d.width(90)
			if heads[i] == 0 && d.IntN(2) == 0 {
				replaced = append(replaced, i)
			}
		}
		heads[d.IntN(len(heads))], widths[d.IntN(len(heads))] = d.s.KVHeads, d.s.FFN
		d.tune(func(c *model.Config) { differ(c, heads, widths, replaced...) })
	},
}

// differ gives each layer key/value heads and an MLP; 0: none. Replaced lists layers with a product for attention.
func differ(c *model.Config, heads, widths []int, replaced ...int) {
	n := max(0, min(c.Layers, len(heads)))
	c.LayerKVHeads, c.LayerFFN = heads[:n], widths[:n]
	c.Bare, c.Replaced = make([]bool, n), make([]bool, n)
	c.KVHeads, c.FFN = 0, 0
	for i := range n {
		c.Bare[i] = heads[i] == 0
		c.KVHeads, c.FFN = max(c.KVHeads, heads[i]), max(c.FFN, widths[i])
	}
	for _, i := range replaced {
		if i < n {
			c.Replaced[i] = heads[i] == 0
		}
	}
}
