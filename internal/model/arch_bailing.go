package model

import (
	"errors"
	"fmt"
	"slices"
)

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
		case h.ScoreFunction != sigmoid || !h.HeadNorms: // Ling 1
			return errors.New("score_function and use_qk_norm: want sigmoid and true, as in Ling 2 and Ring 2; grove runs no other bailing_moe models")
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
