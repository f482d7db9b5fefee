package model

// commandR is Command R, Command R+ and Aya: parallel halves that read one LayerNorm without bias. Every layer rotates
// positions in, none has a window. In Command R+, each head of queries and keys has a norm with weights of its own.
var commandR = func() architecture {
	a := cohere2
	a.name = "command-r"
	a.modelType, a.class = "cohere", "CohereForCausalLM"
	a.window, a.listed = 0, false
	a.defaults = hfConfig{HiddenAct: "silu", LayerNormEps: 1e-5, LogitScale: 0.0625, Tied: true,
		hfRopes: hfRopes{defaultTheta: 500000}}
	a.layer = []part{
		attnNorm, query, key, value, attnOutput,
		{name: "attn_q_norm", folder: "self_attn.q_norm", out: headCount, in: head, when: withHeadNorms},
		{name: "attn_k_norm", folder: "self_attn.k_norm", out: keyHeadCount, in: head, when: withHeadNorms},
		ffnGate, ffnUp, ffnDown,
	}
	a.local, a.check = nil, nil
	a.readKeys = func(k *keys, c *Config) {
		c.LogitScale = 1 / k.float("logit_scale", 1)
		c.HeadNorms = k.HasTensor("blk.0.attn_q_norm.weight")
	}
	a.readFields = func(h *hfConfig, c *Config) error {
		c.Parallel, c.LogitScale = true, 1/h.LogitScale
		c.HeadNorms = h.HeadNorms
		c.Context = max(c.Context, h.MaxLength) // the first Command R was trained on more than the other field says
		return nil
	}
	a.writeFields = func(c *Config, m map[string]any) error {
		m["use_qk_norm"] = c.HeadNorms
		return cohere2.writeFields(c, m)
	}
	return a
}()
