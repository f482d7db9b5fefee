package model

import (
	"cmp"
	"errors"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// gpt2 is GPT-2: each position has a learned vector, which is added to the token's. LayerNorm, biases everywhere, an
// MLP without a gate. In folders, matrices of layers have inputs as rows.
var gpt2 = architecture{
	name: "gpt2", modelType: "gpt2", class: "GPT2LMHeadModel",
	keys: ggufkeys.Rules{
		Obeyed:  strings.Fields("attention.layer_norm_epsilon"),
		Ignored: strings.Fields("attention.layer_norm_rms_epsilon use_parallel_residual"),
	},
	fields: "n_embd",
	defaults: hfConfig{HiddenAct: "gelu_new", Function: "gelu_new", NormEpsilon: 1e-5, Tied: true, ScaleAttention: true,
		OldPositions: 1024, OldWidth: 768, OldLayers: 12, OldHeads: 12},
	prefix: "transformer.h.",
	top: []part{
		{name: "token_embd", folder: "transformer.wte", out: vocab, in: hidden},
		{name: "position_embd", folder: "transformer.wpe", out: positions, in: hidden},
		{name: "output_norm", folder: "transformer.ln_f", out: hidden},
		llamaTop[2],
	},
	layer: []part{
		{name: "attn_norm", folder: "ln_1", out: hidden},
		{name: "attn_qkv", folder: "attn.c_attn", out: qkv, in: hidden, turned: true},
		{name: "attn_output", folder: "attn.c_proj", out: hidden, in: queries, turned: true},
		{name: "ffn_norm", folder: "ln_2", out: hidden},
		{name: "ffn_up", folder: "mlp.c_fc", out: inner, in: hidden, turned: true},
		{name: "ffn_down", folder: "mlp.c_proj", out: hidden, in: inner, turned: true},
	},
	biases:    map[string]string{"": "attn_qkv attn_output ffn_up ffn_down attn_norm ffn_norm output_norm"},
	layerNorm: true, square: true, ownRope: true,

	readKeys:  func(_ *keys, c *Config) { c.setStill() },
	writeKeys: func(_ *Config, set func(string, any)) { set("rope.scaling.finetuned", false) },
	readFields: func(h *hfConfig, c *Config) error {
		c.setStill()
		c.NormEps = float32(h.NormEpsilon)
		switch {
		case !h.ScaleAttention:
			return errors.New("scale_attn_weights is false: want true")
		case h.ScaleByLayer:
			return errors.New("scale_attn_by_inverse_layer_idx is true: want false")
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		for name, old := range map[string]string{"hidden_size": "n_embd", "num_hidden_layers": "n_layer",
			"num_attention_heads": "n_head", "max_position_embeddings": "n_positions", "intermediate_size": "n_inner",
			"layer_norm_eps": "layer_norm_epsilon", "hidden_act": "activation_function"} {
			m[old] = m[name]
			delete(m, name)
		}
		m["n_ctx"] = c.Context
		delete(m, "num_key_value_heads")
		delete(m, "rope_theta")
		return nil
	},
	check: func(c *Config) error {
		if c.KVHeads != c.Heads {
			return errors.New("gpt2 has a key/value head for each head")
		}
		return nil
	},
}

// readOld reads the names that GPT-2's config.json has for common fields.
func (h *hfConfig) readOld() {
	h.HiddenSize, h.Layers = h.OldWidth, h.OldLayers
	h.Heads, h.KVHeads = h.OldHeads, h.OldHeads
	h.HeadDim, h.MaxPositions = 0, h.OldPositions
	h.IntermediateSize = cmp.Or(h.OldInner, evenly(4*h.HiddenSize))
	h.HiddenAct = h.Function
}
