package model

import (
	"errors"
	"fmt"
	"slices"
)

// bailing is Ling 1: DeepSeek's first experts, and queries, keys and values in one tensor of folders.
var bailing = func() architecture {
	a := deepseek
	a.name = "bailingmoe"
	a.modelType, a.class = "bailing_moe", "BailingMoeForCausalLM"
	a.keys.Obeyed = append(slices.Clone(a.keys.Obeyed), "expert_weights_norm")
	a.fields, a.experts = "", bailing2.experts
	a.defaults = hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, Experts: 16, NormTopK: true,
		IntermediateSize: 5632} // of no layer
	a.top, a.biases = bailing2.top, nil
	a.layer = slices.Concat([]part{
		attnNorm,
		{name: "attn_q", folder: "attention.query_key_value", out: queries, in: hidden, mixed: 1},
		{name: "attn_k", folder: "attention.query_key_value", out: keyHeads, in: hidden, mixed: 2},
		{name: "attn_v", folder: "attention.query_key_value", out: keyHeads, in: hidden, mixed: 3},
		{name: "attn_output", folder: "attention.dense", out: hidden, in: queries},
		ffnNorm,
	}, groupedParts)
	a.square, a.ungrouped = false, true
	a.interleaved = true // since mixed rows are turned
	a.of = func(h *hfConfig) bool { return h.ScoreFunction == "" }

	a.readFields = func(h *hfConfig, c *Config) error {
		h.SharedExperts, h.RoutedScale = h.NumSharedExperts, 1 // the published class has no scale
		if h.UseBias || h.QKVBias || h.HeadNorms {
			return errors.New("use_bias, use_qkv_bias and use_qk_norm: want false")
		}
		c.Rule.All = true
		return h.readGrouped(c)
	}
	a.writeFields = func(c *Config, m map[string]any) error {
		err := c.writeGroupedFields(m)
		m["num_shared_experts"] = m["n_shared_experts"]
		for _, field := range []string{"n_shared_experts", "n_group", "topk_group", "routed_scaling_factor"} {
			delete(m, field)
		}
		if c.Rule.Scale != 0 {
			err = fmt.Errorf("key expert_weights_scale is %g: config.json of bailing_moe cannot express it", c.Rule.Scale)
		}
		return err
	}
	a.check = func(c *Config) error {
		if c.Tied || c.Dense > 0 {
			return errors.New("GGUF files of bailingmoe have an output matrix separate from the embedding, and experts in all layers")
		}
		return nil
	}
	return a
}()

// bailing2 is Ling 2 and Ring 2: experts in groups, chosen by σ and a bias, after dense first
// layers; queries, keys and values are one product, and half of each head is rotated.
var bailing2 = architecture{
	name: "bailingmoe2", modelType: "bailing_moe", class: "BailingMoeV2ForCausalLM",
	keys: rmsAnd(groupedKeys + " expert_shared_feed_forward_length"),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, Experts: 16, RoutedScale: 1, Groups: 1,
		TopGroups: 1, NormTopK: true},
	top: slices.Concat([]part{{name: "token_embd", folder: "model.word_embeddings", out: vocab, in: hidden}}, llamaTop[1:]),
	layer: slices.Concat([]part{
		attnNorm,
		{name: "attn_qkv", folder: "attention.query_key_value", out: qkv, in: hidden},
		{name: "attn_output", folder: "attention.dense", out: hidden, in: queries},
		{name: "attn_q_norm", folder: "attention.query_layernorm", out: head},
		{name: "attn_k_norm", folder: "attention.key_layernorm", out: head},
		ffnNorm,
	}, grouped(part{folder: "mlp.gate.expert_bias", when: isSparse})),
	rotated: 0.5, experts: "num_experts",

	implied: func(c *Config) { c.Rule.Sigmoid = true },
	readKeys: func(k *keys, c *Config) {
		c.readGrouped(k)
		if n := k.int("expert_shared_feed_forward_length", c.ExpertFFN); n != c.ExpertFFN {
			k.refuse("expert_shared_feed_forward_length", fmt.Sprintf("is %d, which is not the width of the others", n))
		}
	},
	writeKeys: func(c *Config, set func(string, any)) { c.writeGrouped(set) },
	readFields: func(h *hfConfig, c *Config) error {
		c.Rule.Sigmoid = true
		h.SharedExperts = h.NumSharedExperts
		switch {
		case h.ScoreFunction != sigmoid || !h.HeadNorms:
			return errors.New("score_function and use_qk_norm: want sigmoid and true, as in Ling 2 and Ring 2, or neither, as in Ling 1")
		case h.UseBias || h.QKVBias:
			return errors.New("use_bias and use_qkv_bias: want false")
		case h.SharedExpert != 0 && h.SharedExpert != int(h.ExpertFFN):
			return fmt.Errorf("moe_shared_expert_intermediate_size is %d: want moe_intermediate_size, %d", h.SharedExpert, h.ExpertFFN)
		}
		return h.readGrouped(c)
	},
	writeFields: func(c *Config, m map[string]any) error {
		err := errors.Join(writeRotatedShare(c, m), c.writeGroupedFields(m))
		m["num_shared_experts"], m["score_function"] = m["n_shared_experts"], sigmoid
		m["use_qk_norm"] = true
		delete(m, "n_shared_experts")
		return err
	},
}
