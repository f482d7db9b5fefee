package model

import (
	"errors"
	"fmt"
	"slices"
)

// exaone is EXAONE 3, 3.5 and Deep: Llama with other names of tensors and fields.
var exaone = architecture{
	name: "exaone", modelType: "exaone", class: "ExaoneForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", Function: "silu", NormEpsilon: 1e-5},
	prefix:   "transformer.h.",
	top: []part{
		{name: "token_embd", folder: "transformer.wte", out: vocab, in: hidden},
		{name: "output_norm", folder: "transformer.ln_f", out: hidden},
		llamaTop[2],
	},
	layer: []part{
		{name: "attn_norm", folder: "ln_1", out: hidden}, {name: "ffn_norm", folder: "ln_2", out: hidden},
		{name: "attn_q", folder: "attn.attention.q_proj", out: queries, in: hidden, heads: true},
		{name: "attn_k", folder: "attn.attention.k_proj", out: keyHeads, in: hidden, heads: true},
		{name: "attn_v", folder: "attn.attention.v_proj", out: keyHeads, in: hidden},
		{name: "attn_output", folder: "attn.attention.out_proj", out: hidden, in: queries},
		{name: "ffn_gate", folder: "mlp.c_fc_0", out: inner, in: hidden},
		{name: "ffn_up", folder: "mlp.c_fc_1", out: inner, in: hidden},
		{name: "ffn_down", folder: "mlp.c_proj", out: hidden, in: inner},
	},
	square: true, factored: true, eitherNorm: true,

	readFields: func(h *hfConfig, c *Config) error {
		c.NormEps = float32(h.NormEpsilon)
		if h.Function != "silu" {
			return fmt.Errorf("activation_function is %q: want silu", h.Function)
		}
		return nil
	},
	writeFields: func(_ *Config, m map[string]any) error {
		m["layer_norm_epsilon"], m["activation_function"] = m["rms_norm_eps"], "silu"
		delete(m, "rms_norm_eps")
		delete(m, "hidden_act")
		return nil
	},
}

// exaoneMoE is K-EXAONE: norms before attention and experts, which are chosen by σ and a bias, after dense
// first layers. Where some layers have windows, only these rotate positions in.
var exaoneMoE = architecture{
	name: "exaone-moe", modelType: "exaone_moe", class: "ExaoneMoeForCausalLM",
	keys: rmsAnd(groupedKeys + " expert_shared_feed_forward_length " + windowPattern), fields: exaone4.fields,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 32, Window: 4096, WindowPattern: 4, Experts: 64,
		Used: 8, ExpertFFN: 1024, NumSharedExperts: 1, FirstDense: 1, NormTopK: true, RoutedScale: 2.5, Groups: 1,
		TopGroups: 1, ScoringFunc: sigmoid},
	layer: slices.Concat([]part{attnNorm, query, key, value, queryNorm, keyNorm, attnOutput, ffnNorm},
		grouped(part{folder: "mlp.e_score_correction_bias", when: isSparse})),
	window: 4, listed: true, factored: true, experts: "num_experts",

	// the layer that drafts, as in vLLM: it has an MLP and the window of the model's first layer, and rotates positions
	ahead: onlyAhead(QwenAhead),
	behind: func(b *Config) {
		b.Dense, b.NoRope = b.Layers, nil
		b.Windowed = slices.Repeat([]bool{b.windowed(0)}, b.Layers)
	},

	implied: func(c *Config) { c.Rule.Sigmoid = true },
	local:   exaone4.local,
	readKeys: func(k *keys, c *Config) {
		c.readGrouped(k)
		c.SharedFFN = k.int("expert_shared_feed_forward_length", c.SharedFFN)
		c.checkGrouped(k, "expert_shared_feed_forward_length")
		c.rotateLocal()
	},
	writeKeys: func(c *Config, set func(string, any)) {
		c.writeGrouped(set)
		set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
		exaone4.writeKeys(c, set)
	},
	readFields: func(h *hfConfig, c *Config) error {
		c.Rule.Sigmoid = true
		h.SharedExperts = h.NumSharedExperts
		return errors.Join(h.wantSigmoid(), h.readGrouped(c), h.readMLPTypes(c), exaone4.readFields(h, c))
	},
	writeFields: func(c *Config, m map[string]any) error {
		err := errors.Join(exaone4.writeFields(c, m), c.writeGroupedFields(m))
		m["num_shared_experts"], m["scoring_func"] = m["n_shared_experts"], sigmoid
		delete(m, "n_shared_experts")
		return err
	},
}
