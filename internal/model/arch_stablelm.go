package model

import (
	"errors"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// jais2 is Jais 2: LayerNorm, biases everywhere, an MLP without a gate and with a squared activation.
var jais2 = architecture{
	name: "jais2", modelType: "jais2", class: "Jais2ForCausalLM",
	keys:      stablelmKeys,
	defaults:  hfConfig{HiddenAct: "relu2", LayerNormEps: 1e-5, AttentionBias: true, MLPBias: true},
	layer:     []part{attnNorm, ffnNorm, query, key, value, attnOutput, ffnUp, ffnDown},
	biases:    map[string]string{"": "attn_q attn_k attn_v attn_output ffn_up ffn_down attn_norm ffn_norm output_norm"},
	layerNorm: true, square: true,

	readFields: func(h *hfConfig, _ *Config) error {
		if !h.AttentionBias || !h.MLPBias {
			return errors.New("attention_bias and mlp_bias: want true, as GGUF files of jais2 have these biases")
		}
		return nil
	},
	writeFields: func(_ *Config, m map[string]any) error {
		m["attention_bias"], m["mlp_bias"] = true, true
		return nil
	},
	check: func(c *Config) error {
		if c.KVHeads != c.Heads {
			return errors.New("GGUF files of jais2 have a key/value head for each head")
		}
		return nil
	},
}

var stablelmKeys = ggufkeys.Rules{
	Obeyed: strings.Fields("attention.layer_norm_epsilon"),
	// Converters set the second even for models whose halves are not parallel; the tensors tell them apart.
	Ignored: strings.Fields("attention.layer_norm_rms_epsilon use_parallel_residual"),
}

// stablelm is StableLM 3B and StableLM 2 1.6B: LayerNorm with a gated MLP, part of each head rotated. The 12B
// model, with norms of queries and keys and parallel halves, is refused: it lacks the norm before the MLP.
var stablelm = architecture{
	name: "stablelm", modelType: "stablelm", class: "StableLmForCausalLM",
	keys:     stablelmKeys,
	defaults: hfConfig{HiddenAct: "silu", LayerNormEps: 1e-5, KVHeads: 32},
	layer:    llamaLayer,
	biases: map[string]string{
		"use_qkv_bias": "attn_q attn_k attn_v",
		"":             "attn_norm ffn_norm output_norm",
	},
	layerNorm: true, square: true, rotated: 0.25,

	readFields: func(h *hfConfig, _ *Config) error {
		if h.QKNorm || h.ParallelResidual != nil && *h.ParallelResidual {
			return errors.New("qk_layernorm and use_parallel_residual: want false")
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["partial_rotary_factor"], m["use_qkv_bias"] = share(c.Rope.Dims, c.HeadDim), false
		return nil
	},
	check: func(c *Config) error {
		if c.Tied {
			return errors.New("stablelm has an output matrix separate from the embedding")
		}
		return nil
	},
}
