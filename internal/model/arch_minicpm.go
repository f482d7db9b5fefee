package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
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
		c.ResidualScale = float64(h.ScaleDepth) / math.Sqrt(float64(c.Layers))
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

// minicpm3 is MiniCPM 3: the same multipliers and latent attention, without experts. GGUF files have one matrix of all
// heads' keys and values, and no keys for the multipliers.
var minicpm3 = architecture{
	name: "minicpm3", modelType: "minicpm3", class: "MiniCPM3ForCausalLM",
	keys: rmsAnd("attention.kv_lora_rank attention.q_lora_rank"),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, Tied: true, ScaleEmbed: 12, ScaleDepth: 1.4, BaseHidden: 256,
		LatentRank: 256, QueryRank: 768, PlainDim: 64, RotatedDim: 32},
	layer: slices.Concat(latentAttention[:len(latentAttention)-3], []part{
		{name: "attn_kv_b", folder: "self_attn.kv_b_proj", out: latentHeads, in: latentRank},
		latentAttention[len(latentAttention)-1], ffnGate, ffnUp, ffnDown}),
	rotated: 1, latent: true, ownRope: true,

	implied: minicpm.implied,
	readKeys: func(k *keys, c *Config) {
		if c.KVHeads != c.Heads {
			k.refuse("attention.head_count_kv", fmt.Sprintf("is %d: want the number of heads, %d", c.KVHeads, c.Heads))
		}
		values := k.int("attention.value_length", c.Hidden/max(c.Heads, 1))
		c.SetLatent(LatentConfig{Rank: k.int("attention.kv_lora_rank"), QueryRank: k.int("attention.q_lora_rank"),
			PlainDim: c.HeadDim - c.Rope.Dims, ValueDim: values})
		if c.Rope.Yarn != nil {
			k.refuse("rope.scaling.type", "is yarn")
		}
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("attention.head_count_kv", uint32(c.Heads))
		set("attention.kv_lora_rank", uint32(c.Latent.Rank))
		set("attention.q_lora_rank", uint32(c.Latent.QueryRank))
		set("attention.key_length", uint32(c.Latent.PlainDim+c.Rope.Dims))
		set("attention.value_length", uint32(c.Latent.ValueDim))
	},
	readFields: func(h *hfConfig, c *Config) error {
		h.ValueDim = cmp.Or(h.ValueDim, c.Hidden/c.Heads)
		if err := h.readLatent(c); err != nil {
			return err
		}
		if c.Rope.Yarn != nil {
			return errors.New("rope_scaling is yarn: want none, linear or longrope")
		}
		h.ScaleDepth = cmp.Or(h.ScaleDepth, maybe(math.Sqrt(float64(c.Layers))))
		h.BaseHidden = cmp.Or(h.BaseHidden, maybe(c.Hidden))
		return minicpm.readFields(h, c)
	},
	writeFields: func(c *Config, m map[string]any) error {
		return errors.Join(c.writeLatent(m), minicpm.writeFields(c, m))
	},
	check: func(c *Config) error {
		want := *c
		want.Imply()
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6*b }
		if !near(c.EmbedScale, want.EmbedScale) || !near(c.ResidualScale, want.ResidualScale) ||
			!near(c.LogitScale, want.LogitScale) {
			return fmt.Errorf("scale_emb, scale_depth and dim_model_base give the factors %g, %g and 1/%g: other engines take "+
				"%g, %g and 1/%g for GGUF files of minicpm3", c.EmbedScale, c.ResidualScale, c.LogitScale, want.EmbedScale,
				want.ResidualScale, want.LogitScale)
		}
		if c.Latent.QueryRank == 0 {
			return errors.New("q_lora_rank is null: GGUF files of minicpm3 have a number")
		}
		return nil
	},
}
