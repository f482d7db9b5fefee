// Dense architectures with LayerNorm, whose MLPs have no gate.

package model

import "errors"

// starcoder2 is StarCoder2: biases everywhere. A window is applied, as in transformers; llama.cpp ignores it.
var starcoder2 = architecture{
	name: "starcoder2", modelType: "starcoder2", class: "Starcoder2ForCausalLM",
	keys:     stablelmKeys,
	defaults: hfConfig{HiddenAct: "gelu_pytorch_tanh", KVHeads: 2, Epsilon: 1e-5, UseBias: true, Tied: true},
	layer: []part{
		attnNorm, ffnNorm, query, key, value, attnOutput,
		{name: "ffn_up", folder: "mlp.c_fc", out: inner, in: hidden},
		{name: "ffn_down", folder: "mlp.c_proj", out: hidden, in: inner},
	},
	biases:    map[string]string{"": "attn_q attn_k attn_v attn_output ffn_up ffn_down attn_norm ffn_norm output_norm"},
	layerNorm: true, square: true, window: 1, listed: true,

	readFields: func(h *hfConfig, c *Config) error {
		c.NormEps = float32(h.Epsilon)
		if !h.UseBias {
			return errors.New("use_bias is false: want true, as GGUF files of starcoder2 have these biases")
		}
		return nil
	},
	writeFields: func(_ *Config, m map[string]any) error {
		m["norm_epsilon"], m["use_bias"] = m["layer_norm_eps"], true
		delete(m, "layer_norm_eps")
		return nil
	},
}

// phi2 is Phi 1, 1.5 and 2: parallel halves that read one norm, part of each head rotated, biases everywhere.
var phi2 = architecture{
	name: "phi2", modelType: "phi", class: "PhiForCausalLM",
	keys:     stablelmKeys,
	defaults: hfConfig{HiddenAct: "gelu_new", LayerNormEps: 1e-5},
	top:      []part{llamaTop[0], {name: "output_norm", folder: "model.final_layernorm", out: hidden}, llamaTop[2]},
	layer: []part{
		attnNorm, query, key, value,
		{name: "attn_output", folder: "self_attn.dense", out: hidden, in: queries},
		{name: "ffn_up", folder: "mlp.fc1", out: inner, in: hidden},
		{name: "ffn_down", folder: "mlp.fc2", out: hidden, in: inner},
	},
	biases:    map[string]string{"": "attn_q attn_k attn_v attn_qkv attn_output ffn_up ffn_down attn_norm output_norm output"},
	layerNorm: true, square: true, rotated: 0.5,

	implied: func(c *Config) { c.Parallel = true },
	readFields: func(h *hfConfig, c *Config) error {
		c.Parallel = true
		if h.QKNorm {
			return errors.New("qk_layernorm: want false")
		}
		return nil
	},
	writeFields: writeRotatedShare,
	check:       olmoCheck,
}

// nemotron is Nemotron-4, Minitron and Nemotron-Mini: folders have the weights of norms minus 1, MLPs have a squared
// activation, and part of each head is rotated.
var nemotron = architecture{
	name: "nemotron", modelType: "nemotron", class: "NemotronForCausalLM",
	keys:     stablelmKeys,
	defaults: hfConfig{HiddenAct: "relu2", NormEps: 1e-5},
	layer:    []part{attnNorm, ffnNorm, query, key, value, attnOutput, ffnUp, ffnDown},
	biases: map[string]string{
		"attention_bias": "attn_q attn_k attn_v attn_output",
		"mlp_bias":       "ffn_up ffn_down",
		"":               "attn_norm ffn_norm output_norm",
	},
	layerNorm: true, shifted: true, rotated: 0.5,

	readFields: func(h *hfConfig, c *Config) error {
		c.NormEps = float32(h.NormEps)
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["norm_eps"] = m["layer_norm_eps"]
		delete(m, "layer_norm_eps")
		return writeRotatedShare(c, m)
	},
	check: olmoCheck,
}
