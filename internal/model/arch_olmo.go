package model

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// olmo is OLMo 1: LayerNorm without weights; queries, keys and values are clipped.
var olmo = architecture{
	name: "olmo", modelType: "olmo", class: "OlmoForCausalLM",
	keys: ggufkeys.Rules{
		Obeyed:  strings.Fields("attention.layer_norm_epsilon attention.clamp_kqv"),
		Ignored: strings.Fields("attention.layer_norm_rms_epsilon use_parallel_residual"),
	},
	fields:     "clip_qkv",
	defaults:   hfConfig{HiddenAct: "silu"},
	top:        []part{llamaTop[0], llamaTop[2]},
	layer:      []part{query, key, value, attnOutput, ffnGate, ffnUp, ffnDown},
	biases:     map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	neighbours: true, layerNorm: true, weightless: true, square: true,

	readKeys: func(k *keys, c *Config) { c.Clip = k.float("attention.clamp_kqv", 0) },
	writeKeys: func(c *Config, set func(string, any)) {
		if c.Clip != 0 {
			set("attention.clamp_kqv", float32(c.Clip))
		}
	},
	readFields: func(h *hfConfig, c *Config) error {
		c.NormEps, c.Clip = olmoEps, float64(h.Clip)
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		if c.NormEps != olmoEps {
			return fmt.Errorf("key attention.layer_norm_epsilon is %g: folders of olmo have %g", c.NormEps, olmoEps)
		}
		delete(m, "layer_norm_eps")
		if c.Clip != 0 {
			m["clip_qkv"] = floating(decimal(c.Clip))
		}
		return nil
	},
}

const olmoEps = 1e-5

// olmo2 is OLMo 2, and OLMo 3 in GGUF files: norms after attention and MLP instead of before, and
// norms of queries and keys across all heads. Layers with a window do not scale positions.
var olmo2 = architecture{
	name: "olmo2", modelType: "olmo2", class: "Olmo2ForCausalLM",
	keys:     rmsAnd(windowPattern + " rope.freq_base_swa"),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5},
	layer:    olmoLayer,
	biases:   map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	square:   true, window: 4,

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
	layer:    olmoLayer,
	biases:   olmo2.biases,
	square:   true, window: 4, listed: true,

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
