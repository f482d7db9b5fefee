package model

// qwen2 is Qwen 1.5, 2 and 2.5: queries, keys and values have biases.
var qwen2 = architecture{
	name: "qwen2", modelType: "qwen2", class: "Qwen2ForCausalLM",
	images:   "qwen2vl qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 32},
	layer:    llamaLayer,
	biases:   map[string]string{"": "attn_q attn_k attn_v"},
	square:   true,
}

// mimo is Xiaomi's MiMo: Qwen 2's layers, followed by one that drafts (Config.Ahead).
var mimo = architecture{
	name: "qwen2", modelType: "mimo", class: "MiMoForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 32},
	layer:    llamaLayer,
	biases:   map[string]string{"": "attn_q attn_k attn_v"},
	square:   true,
}

// qwen3 is Qwen 3: norms of each head's queries and keys.
var qwen3 = architecture{
	name: "qwen3", modelType: "qwen3", class: "Qwen3ForCausalLM",
	images:   "qwen3vl qwen3_vl_text",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 32, HeadDim: 128},
	layer:    []part{attnNorm, ffnNorm, queryNorm, keyNorm, query, key, value, attnOutput, ffnGate, ffnUp, ffnDown},
	biases:   map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
}
