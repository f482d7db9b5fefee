package model

// llama is Llama 2 and 3, and models built with their code: SmolLM2, Mistral before Ministral 3,
// TinyLlama.
var llama = architecture{
	name: "llama", modelType: "llama", class: "LlamaForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6},
	prefix:   layersPrefix, top: llamaTop, layer: llamaLayer,
	biases: map[string]string{
		"attention_bias": "attn_q attn_k attn_v attn_output",
		"mlp_bias":       "ffn_gate ffn_up ffn_down",
	},
	neighbours: true, window: 1,
}
