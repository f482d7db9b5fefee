package model

// internlm2 is InternLM 2 and 2.5: Llama with other names of tensors. Folders have queries, keys and values in one.
var internlm2 = architecture{
	name: "internlm2", modelType: "internlm2", class: "InternLM2ForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6},
	top: []part{
		{name: "token_embd", folder: "model.tok_embeddings", out: vocab, in: hidden},
		llamaTop[1],
		{name: "output", folder: "output", out: vocab, in: hidden},
	},
	layer: []part{
		{name: "attn_norm", folder: "attention_norm", out: hidden}, {name: "ffn_norm", folder: "ffn_norm", out: hidden},
		{name: "attn_q", folder: "attention.wqkv", out: queries, in: hidden, mixed: 1},
		{name: "attn_k", folder: "attention.wqkv", out: keyHeads, in: hidden, mixed: 2},
		{name: "attn_v", folder: "attention.wqkv", out: keyHeads, in: hidden, mixed: 3},
		{name: "attn_output", folder: "attention.wo", out: hidden, in: queries},
		{name: "ffn_gate", folder: "feed_forward.w1", out: inner, in: hidden},
		{name: "ffn_up", folder: "feed_forward.w3", out: inner, in: hidden},
		{name: "ffn_down", folder: "feed_forward.w2", out: hidden, in: inner},
	},
	neighbours: true, interleaved: true, square: true, dynamic: true, // interleaved, since mixed rows are turned
	check: olmoCheck,
}

// internlm3 is InternLM 3 in folders: Llama under another name.
var internlm3 = architecture{
	name: "llama", modelType: "internlm3", class: "InternLM3ForCausalLM",
	keys:       rmsKeys,
	defaults:   hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6},
	layer:      llamaLayer,
	neighbours: true, dynamic: true,
}
