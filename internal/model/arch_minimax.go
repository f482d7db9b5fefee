package model

import "slices"

// minimaxM2 is MiniMax M2, M2.1 and M2.5: experts chosen by σ and a bias, norms of queries and keys
// across all heads, of which half is rotated.
var minimaxM2 = architecture{
	name: "minimax-m2", modelType: "minimax_m2", class: "MiniMaxM2ForCausalLM",
	keys:   rmsAnd(expertKeys + " expert_feed_forward_length expert_gating_func"),
	fields: "rotary_dim",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 8, HeadDim: 128,
		LocalExperts: 256, Used: 8, ScoringFunc: sigmoid, hfRopes: hfRopes{defaultTheta: 5e6}},
	layer: slices.Concat([]part{attnNorm}, olmoLayer[:5], []part{attnOutput, ffnNorm}, mixtral.layer[6:], []part{
		{name: "exp_probs_b", ending: ".bias", folder: "block_sparse_moe.e_score_correction_bias", bare: true, out: experts},
	}),
	rotated: 1, experts: "num_local_experts",

	implied: func(c *Config) { c.Rule.Sigmoid, c.Rule.Norm = true, true },
	readKeys: func(k *keys, c *Config) {
		c.FFN = k.int("expert_feed_forward_length", c.FFN)
		k.wantSigmoid()
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("expert_feed_forward_length", uint32(c.FFN))
		set("expert_gating_func", uint32(bySigma))
	},
	readFields: func(h *hfConfig, c *Config) error {
		c.Rule.Sigmoid, c.Rule.Norm = true, true
		return h.wantSigmoid()
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["rotary_dim"], m["scoring_func"] = c.Rope.Dims, sigmoid
		return nil
	},
}
