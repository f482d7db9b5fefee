package model

import (
	"cmp"
	"fmt"
)

// llama is Llama 2 and 3, and models built with their code: SmolLM2, Mistral before Ministral 3,
// TinyLlama.
var llama = architecture{
	name: "llama", modelType: "llama", class: "LlamaForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6},
	layer:    llamaLayer,
	biases: map[string]string{
		"attention_bias": "attn_q attn_k attn_v attn_output",
		"mlp_bias":       "ffn_gate ffn_up ffn_down",
	},
	neighbours: true, window: 1,
}

// nanbeige is Nanbeige 4.2: rows pass the layers twice.
var nanbeige = func() architecture {
	a := llama
	a.name = "nanbeige"
	a.modelType, a.class = "nanbeige", "NanbeigeForCausalLM"
	a.keys = rmsAnd("num_loops skip_loop_final_norm")
	a.fields = "num_loops"
	a.window = 0
	a.readKeys = func(k *keys, c *Config) {
		c.loop(k.int("num_loops", 1), k.bool("skip_loop_final_norm", false))
		if c.Loops < 1 {
			k.refuse("num_loops", fmt.Sprintf("is %d", c.Loops))
		}
	}
	a.writeKeys = func(c *Config, set func(string, any)) {
		set("num_loops", uint32(max(c.Loops, 1)))
		set("skip_loop_final_norm", c.Unnormed)
	}
	a.readFields = func(h *hfConfig, c *Config) error {
		c.loop(cmp.Or(h.Loops, 1), h.Unnormed)
		if c.Loops < 1 || h.QKNorm {
			return fmt.Errorf("num_loops is %d and qk_layernorm %v: want a positive number, and false", c.Loops, h.QKNorm)
		}
		return nil
	}
	a.writeFields = func(c *Config, m map[string]any) error {
		m["num_loops"], m["skip_loop_final_norm"] = max(c.Loops, 1), c.Unnormed
		return nil
	}
	return a
}()

// loop has rows pass the layers several times.
func (c *Config) loop(times int, unnormed bool) {
	c.Loops, c.Unnormed = times, unnormed
	c.Layers *= max(times, 0)
}
