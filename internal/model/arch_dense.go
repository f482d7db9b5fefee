// Dense architectures that differ from Llama in a few details.

package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// seedOSS is ByteDance's Seed-OSS: queries, keys and values have biases.
var seedOSS = architecture{
	name: "seed_oss", modelType: "seed_oss", class: "SeedOssForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 8, HeadDim: 128, AttentionBias: true},
	layer: []part{
		attnNorm, query, key, value, attnOutput,
		{name: "post_attention_norm", folder: "post_attention_layernorm", as: "ffn_norm", out: hidden},
		ffnGate, ffnUp, ffnDown,
	},
	biases: map[string]string{
		"attention_bias":     "attn_q attn_k attn_v",
		"attention_out_bias": "attn_output",
		"mlp_bias":           "ffn_gate ffn_up ffn_down",
	},
}

// pangu is Huawei's openPangu, dense: products of attention have biases.
var pangu = architecture{
	name: "pangu-embedded", modelType: "PanguEmbedded", class: "PanguEmbeddedForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8, hfRopes: hfRopes{defaultTheta: 16e6}},
	layer:    llamaLayer,
	biases:   map[string]string{"": "attn_q attn_k attn_v attn_output"},
}

// maincoder is Maincoder: queries and keys are normalised after rotation.
var maincoder = architecture{
	name: "maincoder", modelType: "maincoder", class: "MaincoderForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, Tied: true, HeadNorms: true, hfRopes: hfRopes{defaultTheta: 1e6}},
	layer: []part{
		attnNorm, query, queryNorm, key, keyNorm, value, attnOutput, ffnNorm,
		{name: "ffn_gate", folder: "feed_forward.gate_proj", out: inner, in: hidden},
		{name: "ffn_up", folder: "feed_forward.up_proj", out: inner, in: hidden},
		{name: "ffn_down", folder: "feed_forward.down_proj", out: hidden, in: inner},
	},
	neighbours: true, interleaved: true, normLast: true,

	readFields: func(h *hfConfig, _ *Config) error {
		if !h.HeadNorms {
			return errors.New("use_qk_norm is false: want true, as GGUF files of maincoder have these norms")
		}
		return nil
	},
}

// arcee is Arcee's AFM: an MLP without a gate, with a squared activation.
var arcee = architecture{
	name: "arcee", modelType: "arcee", class: "ArceeForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "relu2", RMSNormEps: 1e-5, KVHeads: 0},
	layer:    []part{attnNorm, ffnNorm, query, key, value, attnOutput, ffnUp, ffnDown},
	biases: map[string]string{
		"attention_bias": "attn_q attn_k attn_v attn_output",
		"mlp_bias":       "ffn_up ffn_down",
	},
	neighbours: true,
}

// cohere2 is Command R7B: parallel halves that read one LayerNorm without bias, and a window in
// three of four layers; only these rotate positions in.
var cohere2 = architecture{
	name: "cohere2", modelType: "cohere2", class: "Cohere2ForCausalLM",
	keys: func() (r ggufkeys.Rules) {
		r.Obeyed = []string{"attention.layer_norm_epsilon", "logit_scale"}
		r.Ignored = []string{"attention.layer_norm_rms_epsilon", "use_parallel_residual"}
		return r
	}(),
	fields:     "logit_scale",
	defaults:   hfConfig{HiddenAct: "silu", LayerNormEps: 1e-5, Window: 4096, LogitScale: 0.0625, Tied: true},
	layer:      []part{attnNorm, query, key, value, attnOutput, ffnGate, ffnUp, ffnDown},
	biases:     map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	neighbours: true, interleaved: true, layerNorm: true, biasless: true, window: 4, listed: true,

	implied: func(c *Config) {
		c.Parallel = true
		c.LogitScale = 1 / 0.0625
	},
	local: func(c *Config) { c.rotateLocal() },
	readKeys: func(k *keys, c *Config) {
		c.LogitScale = 1 / k.float("logit_scale", 0.0625)
		c.rotateLocal()
	},
	writeKeys: func(c *Config, set func(string, any)) { set("logit_scale", float32(1/c.LogitScale)) },
	readFields: func(h *hfConfig, c *Config) error {
		c.Parallel, c.LogitScale = true, 1/h.LogitScale
		h.setPattern(c)
		c.rotateLocal()
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["logit_scale"] = floating(decimal(float64(float32(1 / c.LogitScale))))
		return nil
	},
	check: threeOfFour,
}

// exaone4 is LG's EXAONE 4: norms after attention and MLP instead of before. Where some layers have
// windows, only these rotate positions in. llama.cpp applies the window only in models of 64 layers.
var exaone4 = architecture{
	name: "exaone4", modelType: "exaone4", class: "Exaone4ForCausalLM",
	keys: rmsAnd(windowPattern), fields: "sliding_window_pattern",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 32, Window: 4096},
	layer:    []part{query, key, value, queryNorm, keyNorm, attnOutput, attnPost, ffnGate, ffnUp, ffnDown, ffnPost},
	window:   4, listed: true, factored: true,

	local:    func(c *Config) { c.rotateLocal() },
	readKeys: func(_ *keys, c *Config) { c.rotateLocal() },
	writeKeys: func(c *Config, set func(string, any)) {
		if c.Window > 0 {
			set(windowPattern, c.Windowed)
		}
	},
	readFields: func(h *hfConfig, c *Config) error {
		h.setPattern(c)
		c.rotateLocal()
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["layer_types"] = c.attentionKinds()
		return nil
	},
}

// threeOfFour returns an error if a model's windows are not in three of four layers.
func threeOfFour(c *Config) error {
	if c.Window == 0 || !slices.Equal(c.Windowed, (&architecture{window: 4}).windows(c.Layers)) {
		return fmt.Errorf("GGUF files of %s have a window in three of four layers: the model has it elsewhere (layer_types)", c.Arch)
	}
	return nil
}

// rotateLocal turns rotation off in layers without a window, if others have one.
func (c *Config) rotateLocal() {
	c.NoRope = nil
	if c.Window == 0 {
		return
	}
	for i := range c.Layers {
		c.NoRope = append(c.NoRope, !c.windowed(i))
	}
}
