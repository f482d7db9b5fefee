package model

import (
	"cmp"
	"errors"
	"fmt"
)

// olmo2 is OLMo 2, and OLMo 3 in GGUF files: norms after attention and MLP instead of before, and
// norms of queries and keys across all heads. Layers with a window do not scale positions.
var olmo2 = architecture{
	name: "olmo2", modelType: "olmo2", class: "Olmo2ForCausalLM",
	keys:     rmsAnd(windowPattern + " rope.freq_base_swa"),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5},
	prefix:   layersPrefix, top: llamaTop, layer: olmoLayer,
	biases: map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	square: true, window: 4,

	local:    olmoLocal,
	readKeys: func(k *keys, c *Config) { c.setLocalRope(k.float("rope.freq_base_swa", c.Rope.Base)) },
	writeKeys: func(c *Config, set func(string, any)) {
		if c.LocalRope != nil && c.LocalRope.Base != c.Rope.Base {
			set("rope.freq_base_swa", float32(c.LocalRope.Base))
		}
	},
	check: olmoCheck,
}

// olmo3 is OLMo 3 in folders.
var olmo3 = architecture{
	name: "olmo2", modelType: "olmo3", class: "Olmo3ForCausalLM",
	keys:     olmo2.keys,
	fields:   "rope_local_base_freq", // only in rope_parameters
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, Window: 4096},
	prefix:   layersPrefix, top: llamaTop, layer: olmoLayer,
	biases: olmo2.biases,
	square: true, window: 4, listed: true,

	readFields: func(h *hfConfig, c *Config) error {
		c.setLocalRope(cmp.Or(h.LocalTheta, c.Rope.Base))
		return nil
	},
	writeFields: func(c *Config, _ map[string]any) error {
		if c.LocalRope != nil && c.LocalRope.Base != c.Rope.Base {
			return errors.New("key rope.freq_base_swa: rope_theta of config.json is the base of layers with a window too")
		}
		return nil
	},
	check: olmoCheck,
}

var olmoLayer = []part{
	query, key, value,
	{name: "attn_q_norm", folder: "self_attn.q_norm", out: queries},
	{name: "attn_k_norm", folder: "self_attn.k_norm", out: keyHeads},
	attnOutput, attnPost, ffnGate, ffnUp, ffnDown, ffnPost,
}

// setLocalRope gives layers with a window an unscaled rotation with the given base.
func (c *Config) setLocalRope(base float64) {
	if c.Window > 0 {
		c.LocalRope = &RopeConfig{Base: base, Dims: c.Rope.Dims, Neighbours: c.Rope.Neighbours, Scale: 1}
	}
}

func olmoLocal(c *Config) { c.setLocalRope(c.Rope.Base) }

func olmoCheck(c *Config) error {
	if c.Tied {
		return fmt.Errorf("GGUF files of %s have an output matrix separate from the embedding", c.Arch)
	}
	return nil
}
