package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// granite is the dense Granite 3 and 4: Llama with multipliers of embeddings, attention scores,
// residuals and logits.
var granite = architecture{
	name: "granite", modelType: "granite", class: "GraniteForCausalLM",
	// llama.cpp also writes the keys of Mamba-2 layers to files of Granite 4; dense models have no such layers
	keys: func() ggufkeys.Rules {
		r := graniteKeys
		r.Obeyed = append(slices.Clone(r.Obeyed), sharedWidth)
		r.Ignored = slices.Concat(r.Ignored, strings.Fields(mambaKeys))
		return r
	}(),
	fields: "attention_multiplier embedding_multiplier residual_multiplier logits_scaling",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6,
		AttnMultiplier: 1, EmbedMultiplier: 1, ResidualMultiplier: 1, LogitsScaling: 1},
	layer: llamaLayer,
	biases: map[string]string{
		"attention_bias": "attn_q attn_k attn_v attn_output",
		"mlp_bias":       "ffn_gate ffn_up ffn_down",
	},
	neighbours: true, square: true,

	readKeys: func(k *keys, c *Config) {
		readGraniteKeys(k, c)
		wantSharedWidth(k, c)
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("rope.scaling.finetuned", c.NoRope == nil)
		if c.LogitScale == 0 { // llama.cpp requires it
			set("logit_scale", float32(1))
		}
	},
	readFields: readMultipliers,
	writeFields: func(c *Config, m map[string]any) error {
		c.writeMultipliers(m)
		if c.NoRope != nil {
			return errors.New("key rope.scaling.finetuned is false: config.json of granite cannot express a model " +
				"that does not rotate positions in")
		}
		return nil
	},
}

var graniteKeys = rmsAnd("attention.scale embedding_scale residual_scale logit_scale rope.scaling.finetuned")

func readGraniteKeys(k *keys, c *Config) {
	if !k.bool("rope.scaling.finetuned", true) { // llama.cpp's mark of a model that does not rotate
		c.NoRope = everyNth(c.Layers, 1)
	}
}

// sharedWidth is the key of the width of experts that all rows use. Files of Granite 4 without experts also have it.
const sharedWidth = "expert_shared_feed_forward_length"

// wantSharedWidth refuses, in a file without experts, a shared width that differs from the MLP's.
func wantSharedWidth(k *keys, c *Config) {
	if n := k.int(sharedWidth, c.FFN); n != c.FFN {
		k.refuse(sharedWidth, "is not feed_forward_length, in a model without experts")
	}
}

// granite4 is the dense Granite 4 in folders, which use the names of a family with experts and
// layers of other kinds. Its GGUF files call it granite.
var granite4 = architecture{
	name: "granite", modelType: "granitemoehybrid", class: "GraniteMoeHybridForCausalLM",
	keys: granite.keys, fields: granite.fields, defaults: granite.defaults,
	layer: []part{
		attnNorm, ffnNorm, query, key, value, attnOutput,
		{name: "ffn_gate", folder: "shared_mlp.input_linear", out: inner, in: hidden, half: 1},
		{name: "ffn_up", folder: "shared_mlp.input_linear", out: inner, in: hidden, half: 2},
		{name: "ffn_down", folder: "shared_mlp.output_linear", out: hidden, in: inner},
	},
	biases:     map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	neighbours: true, square: true, attentionOnly: true,

	readFields: func(h *hfConfig, c *Config) error {
		c.Folder, c.FFN = h.ModelType, h.SharedFFN
		return errors.Join(readPositionType(h, c), readMultipliers(h, c))
	},
}

func readMultipliers(h *hfConfig, c *Config) error {
	c.AttnScale, c.EmbedScale = h.AttnMultiplier, h.EmbedMultiplier
	c.ResidualScale, c.LogitScale = h.ResidualMultiplier, h.LogitsScaling
	return nil
}

func (c *Config) writeMultipliers(m map[string]any) {
	for field, x := range map[string]float64{"attention_multiplier": c.AttnScale, "embedding_multiplier": c.EmbedScale,
		"residual_multiplier": c.ResidualScale, "logits_scaling": c.LogitScale} {
		switch {
		case x != 0:
			m[field] = decimal(x)
		case field == "attention_multiplier":
			m[field] = c.rootScale()
		default:
			m[field] = 1
		}
	}
}

// readPositionType reads whether positions are rotated in.
func readPositionType(h *hfConfig, c *Config) error {
	switch h.PositionType {
	case "rope":
	case "", "nope":
		c.NoRope = everyNth(c.Layers, 1)
	default:
		return fmt.Errorf("position_embedding_type is %q: want rope or nope", h.PositionType)
	}
	return nil
}
