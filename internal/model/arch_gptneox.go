package model

import (
	"errors"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// gptneox is GPT-NeoX and Pythia: LayerNorm, biases everywhere, an MLP without a gate, and part of
// each head rotated.
var gptneox = architecture{
	name: "gptneox", modelType: "gpt_neox", class: "GPTNeoXForCausalLM",
	keys: ggufkeys.Rules{
		Obeyed:  strings.Fields("attention.layer_norm_epsilon use_parallel_residual"),
		Ignored: strings.Fields("attention.layer_norm_rms_epsilon"),
	},
	defaults: hfConfig{HiddenAct: "gelu", LayerNormEps: 1e-5, AttentionBias: true},
	prefix:   "gpt_neox.layers.",
	top: []part{
		{name: "token_embd", folder: "gpt_neox.embed_in", out: vocab, in: hidden},
		{name: "output_norm", folder: "gpt_neox.final_layer_norm", out: hidden},
		{name: "output", folder: "embed_out", out: vocab, in: hidden},
	},
	layer: []part{
		attnNorm, ffnNorm,
		{name: "attn_qkv", folder: "attention.query_key_value", out: qkv, in: hidden, fused: true},
		{name: "attn_output", folder: "attention.dense", out: hidden, in: queries},
		{name: "ffn_up", folder: "mlp.dense_h_to_4h", out: inner, in: hidden},
		{name: "ffn_down", folder: "mlp.dense_4h_to_h", out: hidden, in: inner},
	},
	biases: map[string]string{
		"attention_bias": "attn_qkv attn_output",
		"":               "ffn_up ffn_down attn_norm ffn_norm output_norm",
	},
	layerNorm: true, square: true, rotated: 0.25,
	fields: "rotary_pct rotary_emb_base",

	check: func(c *Config) error {
		if c.Tied || c.KVHeads != c.Heads {
			return errors.New("gptneox has an output matrix, and a key/value head for each head")
		}
		return nil
	},
	readKeys:  func(k *keys, c *Config) { c.Parallel = k.bool("use_parallel_residual", true) },
	writeKeys: func(c *Config, set func(string, any)) { set("use_parallel_residual", c.Parallel) },
	readFields: func(h *hfConfig, c *Config) error {
		c.Parallel = h.ParallelResidual == nil || *h.ParallelResidual
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["use_parallel_residual"], m["attention_bias"] = c.Parallel, true
		m["rotary_emb_base"], m["rotary_pct"] = m["rope_theta"], share(c.Rope.Dims, c.HeadDim)
		delete(m, "rope_theta")
		delete(m, "num_key_value_heads")
		return nil
	},
}
