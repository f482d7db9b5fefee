package model

// phi3 is Phi 3, 3.5 and 4, including mini: fused projections, longrope, and part of each head
// rotated. A window is applied, as in transformers; llama.cpp ignores it.
var phi3 = architecture{
	name: "phi3", modelType: "phi3", class: "Phi3ForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, hfRopes: hfRopes{}},
	layer: []part{
		attnNorm, ffnNorm,
		{name: "attn_qkv", folder: "self_attn.qkv_proj", out: qkv, in: hidden},
		attnOutput,
		{name: "ffn_up", folder: "mlp.gate_up_proj", out: inner2, in: hidden}, // the gate's rows come first
		ffnDown,
	},
	square: true, rotated: 1, window: 1, listed: true,

	writeFields: func(c *Config, m map[string]any) error {
		m["partial_rotary_factor"] = share(c.Rope.Dims, c.HeadDim)
		if c.Rope.Original != 0 {
			m["original_max_position_embeddings"] = c.Rope.Original
		}
		return nil
	},
}
