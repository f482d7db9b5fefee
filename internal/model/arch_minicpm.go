package model

import (
	"errors"
	"math"
)

// minicpm is MiniCPM 1, 2 and 4: Llama with multipliers of embeddings, residuals and logits.
var minicpm = architecture{
	name: "minicpm", modelType: "minicpm", class: "MiniCPMForCausalLM",
	keys:       rmsAnd("embedding_scale residual_scale logit_scale"),
	defaults:   hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, Tied: true, ScaleEmbed: 1, ScaleDepth: 1, BaseHidden: 1},
	layer:      llamaLayer,
	biases:     map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	neighbours: true,

	implied: func(c *Config) { // of early files, all of one family
		c.EmbedScale = 12
		c.ResidualScale = 1.4 / math.Sqrt(float64(c.Layers))
		c.LogitScale = float64(c.Hidden) / 256
	},
	readFields: func(h *hfConfig, c *Config) error {
		if h.BaseHidden < 1 {
			return errors.New("dim_model_base: want 1 or more")
		}
		c.EmbedScale = h.ScaleEmbed
		c.ResidualScale = h.ScaleDepth / math.Sqrt(float64(c.Layers))
		c.LogitScale = float64(c.Hidden) / float64(h.BaseHidden)
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		base := math.Round(float64(c.Hidden) / c.LogitScale)
		if !(base >= 1) || float32(float64(c.Hidden)/base) != float32(c.LogitScale) {
			return errors.New("key logit_scale: the hidden size divided by it is not a whole number, which config.json of minicpm requires")
		}
		m["scale_emb"] = floating(decimal(c.EmbedScale))
		m["scale_depth"] = floating(c.ResidualScale * math.Sqrt(float64(c.Layers)))
		m["dim_model_base"] = int(base)
		return nil
	},
}
