package model

import (
	"errors"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// stablelm is StableLM 3B and StableLM 2 1.6B: LayerNorm with a gated MLP, part of each head rotated. The 12B
// model, with norms of queries and keys and parallel halves, is refused: it lacks the norm before the MLP.
var stablelm = architecture{
	name: "stablelm", modelType: "stablelm", class: "StableLmForCausalLM",
	keys: ggufkeys.Rules{
		Obeyed: strings.Fields("attention.layer_norm_epsilon"),
		// Converters set the second even for models whose halves are not parallel; the tensors tell them apart.
		Ignored: strings.Fields("attention.layer_norm_rms_epsilon use_parallel_residual"),
	},
	defaults: hfConfig{HiddenAct: "silu", LayerNormEps: 1e-5, KVHeads: 32},
	prefix:   layersPrefix, top: llamaTop, layer: llamaLayer,
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
