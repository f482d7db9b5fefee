package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/nn"
)

// smallthinker is SmallThinker: experts in all layers, whose router reads the layer's input before
// attention, and a window in three of four layers; only these rotate positions in. llama.cpp's window is
// always of 4096 positions.
var smallthinker = architecture{
	name: "smallthinker", modelType: "smallthinker", class: "SmallThinkerForCausalLM",
	keys:     rmsAnd(expertKeys + " expert_feed_forward_length expert_gating_func"),
	defaults: hfConfig{HiddenAct: "relu", RMSNormEps: 1e-6, IntermediateSize: 768, PrimaryFFN: 768},
	layer: []part{
		attnNorm, query, key, value, attnOutput, ffnNorm,
		{name: "ffn_gate_inp", folder: "block_sparse_moe.primary_router", out: experts, in: hidden},
		{name: "ffn_gate_exps", folder: "block_sparse_moe.experts.*.gate", out: inner, in: hidden, each: true},
		{name: "ffn_up_exps", folder: "block_sparse_moe.experts.*.up", out: inner, in: hidden, each: true},
		{name: "ffn_down_exps", folder: "block_sparse_moe.experts.*.down", out: hidden, in: inner, each: true},
	},
	window: 4, leading: true, experts: "moe_num_primary_experts", early: true, act: nn.ReLUMul,

	local: func(c *Config) { c.rotateLocal() },
	readKeys: func(k *keys, c *Config) {
		c.FFN = k.int("expert_feed_forward_length", c.FFN)
		n := k.int("expert_gating_func", bySigma)
		c.Rule.Sigmoid, c.Rule.Norm = n == bySigma, n == bySigma
		if n != bySigma && n != bySoftmax {
			k.refuse("expert_gating_func", fmt.Sprintf("is %d, not %d or %d", n, bySoftmax, bySigma))
		}
		c.rotateLocal()
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("expert_feed_forward_length", uint32(c.FFN))
		gating := uint32(bySoftmax)
		if c.Rule.Sigmoid {
			gating = bySigma
		}
		set("expert_gating_func", gating)
	},
	readFields: func(h *hfConfig, c *Config) error {
		c.FFN = h.PrimaryFFN
		c.Rule.Sigmoid, c.Rule.Norm = !h.PrimarySoftmax, !h.PrimarySoftmax
		c.Window, c.Windowed = 0, nil
		if h.WindowSize > 0 && slices.Contains(h.WindowLayout, 1) {
			c.Window = int(h.WindowSize)
			c.Windowed = ones(h.WindowLayout)
		}
		c.rotateLocal()
		for i := range c.Layers {
			if h.RopeLayout != nil && (i >= len(h.RopeLayout) || (h.RopeLayout[i] == 0) != (c.NoRope != nil && c.NoRope[i])) {
				return errors.New("rope_layout: want rotations in all layers, or in those of sliding_window_layout alone")
			}
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		for _, name := range []string{"intermediate_size", "num_experts_per_tok", "sliding_window", "layer_types"} {
			delete(m, name)
		}
		m["moe_num_active_primary_experts"], m["moe_ffn_hidden_size"] = c.Used, c.FFN
		m["moe_primary_router_apply_softmax"] = !c.Rule.Sigmoid
		windows, ropes := make([]int, c.Layers), make([]int, c.Layers)
		for i := range windows {
			if c.windowed(i) {
				windows[i] = 1
			}
			if c.Window == 0 || c.windowed(i) {
				ropes[i] = 1
			}
		}
		m["sliding_window_layout"], m["rope_layout"] = windows, ropes
		m["sliding_window_size"] = c.Window
		return nil
	},
	check: func(c *Config) error {
		if c.Window > 0 && !slices.Equal(c.Windowed, c.arch().windows(c.Layers)) {
			return fmt.Errorf("GGUF files of %s have a window in three of four layers, not in the first: "+
				"the model has it elsewhere (sliding_window_layout)", c.Arch)
		}
		return nil
	},
}

// ones reports which numbers of a list are not 0.
func ones(list []int) []bool {
	is := make([]bool, len(list))
	for i, n := range list {
		is[i] = n != 0
	}
	return is
}
