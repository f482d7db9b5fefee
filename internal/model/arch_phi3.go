package model

import (
	"errors"
	"fmt"
)

// phi3 is Phi 3, 3.5 and 4, including mini: fused projections, longrope, and part of each head
// rotated. A window is applied, as in transformers; llama.cpp ignores it.
var phi3 = architecture{
	name: "phi3", modelType: "phi3", class: "Phi3ForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, hfRopes: hfRopes{}},
	layer: []part{
		attnNorm, ffnNorm,
		{name: "attn_qkv", folder: "self_attn.qkv_proj", out: qkv, in: hidden},
		attnOutput,
		{name: "ffn_up", folder: "mlp.gate_up_proj", out: inner2, in: hidden}, // the gate's rows come first
		ffnDown,
	},
	square: true, rotated: 1, window: 1, listed: true,

	writeFields: func(c *Config, m map[string]any) error {
		m["partial_rotary_factor"] = share(c.Rope.Dims, c.HeadDim)
		if c.Rope.Original != 0 {
			m["original_max_position_embeddings"] = c.Rope.Original
		}
		return nil
	},
}

// phimoe is Phi-3.5-MoE: LayerNorm, biases except in experts, and a softmax for each of a row's experts. llama.cpp
// computes RMSNorm, and one softmax for both.
var phimoe = architecture{
	name: "phimoe", modelType: "phimoe", class: "PhiMoEForCausalLM",
	keys: rmsAnd(expertKeys),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8, LocalExperts: 16, Used: 2, RouterJitter: 0.01,
		hfRopes: hfRopes{defaultTheta: 1e6}},
	layer: mixtral.layer,
	biases: map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output", "lm_head_bias": "output",
		"": "attn_norm ffn_norm output_norm"},
	layerNorm: true, rmsEps: true, square: true, window: 1, listed: true, experts: "num_local_experts",

	implied: func(c *Config) { c.Rule.Mixer = 0.01 },
	readKeys: func(k *keys, c *Config) {
		if c.Used != 2 {
			k.refuse("expert_used_count", fmt.Sprintf("is %d, not 2", c.Used))
		}
	},
	readFields: func(h *hfConfig, c *Config) error {
		c.Rule.Mixer = float32(h.RouterJitter)
		for _, r := range []*hfRope{h.Params, h.Scaling} {
			switch s := r.scaling(); {
			case s.Type == "" || s.Type == "default":
			case s.ShortScale == 0 || s.ShortScale != s.LongScale || c.Rope.Long == nil:
				return fmt.Errorf("rope_scaling: %s with short_mscale %g and long_mscale %g: want longrope and one number",
					s.Type, s.ShortScale, s.LongScale)
			default:
				c.Rope.setAttn(s.ShortScale)
			}
		}
		switch {
		case c.Used != 2:
			return fmt.Errorf("num_experts_per_tok is %d: want 2", c.Used)
		case !positive(h.RouterJitter):
			return fmt.Errorf("router_jitter_noise is %g: want a positive number", h.RouterJitter)
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["router_jitter_noise"] = decimal(float64(c.Rule.Mixer))
		m["lm_head_bias"] = false
		if r, ok := m["rope_scaling"].(map[string]any); ok {
			delete(r, "attention_factor")
			factor := floating(decimal(c.Rope.factor()))
			r["short_mscale"], r["long_mscale"] = factor, factor
			m["original_max_position_embeddings"] = c.Rope.Original
		}
		return nil
	},
	check: func(c *Config) error {
		switch {
		case c.Tied:
			return errors.New("GGUF files of phimoe have an output matrix separate from the embedding")
		case c.Rule.Mixer != 0.01:
			return fmt.Errorf("router_jitter_noise is %g: GGUF files of phimoe have 0.01", c.Rule.Mixer)
		}
		return nil
	},
}
