package model

import (
	"errors"
	"slices"
)

// smollm3 is SmolLM3: every fourth layer rotates no positions in.
var smollm3 = architecture{
	name: "smollm3", modelType: "smollm3", class: "SmolLM3ForCausalLM",
	keys: rmsAnd("attention.scale"),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 4, NoRopeInterval: 4, Tied: true,
		hfRopes: hfRopes{defaultTheta: 2e6}},
	layer: llamaLayer,
	biases: map[string]string{
		"attention_bias": "attn_q attn_k attn_v attn_output",
		"mlp_bias":       "ffn_gate ffn_up ffn_down",
	},
	neighbours: true, square: true,

	implied: func(c *Config) { c.NoRope = everyNth(c.Layers, 4) },
	readFields: func(h *hfConfig, c *Config) error {
		switch {
		case h.NoRope == nil && h.NoRopeInterval < 1:
			return errors.New("no_rope_layer_interval: want a positive number")
		case h.NoRope == nil:
			c.NoRope = everyNth(c.Layers, h.NoRopeInterval)
			return nil
		case len(h.NoRope) != c.Layers:
			return errors.New("no_rope_layers: want one number for each layer")
		}
		for _, rotated := range h.NoRope {
			c.NoRope = append(c.NoRope, rotated == 0)
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		rotated := make([]int, c.Layers)
		for i := range rotated {
			if i >= len(c.NoRope) || !c.NoRope[i] {
				rotated[i] = 1
			}
		}
		m["no_rope_layers"] = rotated
		return nil
	},
	check: func(c *Config) error {
		if !slices.Equal(c.NoRope, everyNth(c.Layers, 4)) {
			return errors.New("GGUF files of smollm3 have rotation in all layers except every fourth: " +
				"the model has it elsewhere (no_rope_layers)")
		}
		return nil
	},
}

// everyNth returns a list that is true for every n-th layer.
func everyNth(layers, n int) []bool {
	list := make([]bool, layers)
	for i := range list {
		list[i] = (i+1)%n == 0
	}
	return list
}
