package model

import (
	"errors"
	"fmt"

	"github.com/grovellm/grove/internal/nn"
)

// gptOSS is gpt-oss: experts with biases and a clamped SwiGLU, attention sinks, and a window in
// every other layer. Its folders have experts in MXFP4 or transposed (folderparam.go).
var gptOSS = architecture{
	name: "gpt-oss", modelType: "gpt_oss", class: "GptOssForCausalLM",
	keys: rmsAnd(expertKeys + " expert_feed_forward_length rope.freq_base_swa " + windowPattern),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8, HeadDim: 64, LocalExperts: 128,
		Used: 4, Window: 128, AttentionBias: true, hfRopes: hfRopes{defaultTheta: 15e4}},
	layer: []part{
		attnNorm, {name: "post_attention_norm", folder: "post_attention_layernorm", as: "ffn_norm", out: hidden},
		query, key, value, attnOutput,
		{name: "attn_sinks", folder: "self_attn.sinks", out: headCount, param: true},
		{name: "ffn_gate_inp", folder: "mlp.router", out: experts, in: hidden},
		{name: "ffn_gate_exps", folder: "mlp.experts.gate_up_proj", out: inner, in: hidden, half: 1, each: true, param: true},
		{name: "ffn_up_exps", folder: "mlp.experts.gate_up_proj", out: inner, in: hidden, half: 2, each: true, param: true},
		{name: "ffn_down_exps", folder: "mlp.experts.down_proj", out: hidden, in: inner, each: true, param: true},
	},
	biases: map[string]string{"": "attn_q attn_k attn_v attn_output ffn_gate_inp ffn_gate_exps ffn_up_exps ffn_down_exps"},
	window: 2, listed: true, experts: "num_local_experts", act: nn.ClampedMul,

	readKeys: func(k *keys, c *Config) {
		c.FFN = k.int("expert_feed_forward_length", c.FFN)
		c.readLocalBase(k)
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("expert_feed_forward_length", uint32(c.FFN))
		writeLocalBase(c, set)
	},
	readFields: func(h *hfConfig, c *Config) error {
		switch {
		case !h.AttentionBias:
			return errors.New("attention_bias is false: want true, as layers of gpt-oss have biases")
		case h.Quantization != nil && h.Quantization.Method != "mxfp4":
			return fmt.Errorf("quantization_config has the quant_method %q: want mxfp4, or a folder whose weights are F32, F16 or BF16",
				h.Quantization.Method)
		case h.Scaling == nil && h.Params == nil: // transformers then uses those of gpt-oss-20b
			return errors.New(`rope_scaling is missing: take it from the original config.json, ` +
				`or set {"rope_type": "default"} if positions are not scaled`)
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["attention_bias"], m["swiglu_limit"] = true, floating(7)
		if m["rope_scaling"] == nil {
			m["rope_scaling"] = map[string]any{"rope_type": "default"}
		}
		if c.LocalRope != nil && c.LocalRope.Base != c.Rope.Base {
			return errors.New("key rope.freq_base_swa: config.json cannot express a different rotation in layers with a window")
		}
		return nil
	},
	check: func(c *Config) error {
		if c.Tied || c.Window == 0 {
			return errors.New("GGUF files of gpt-oss have an output matrix separate from the embedding, and a sliding window")
		}
		return nil
	},
}
