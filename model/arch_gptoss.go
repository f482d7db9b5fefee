package model

import (
	"errors"
	"slices"

	"github.com/grovellm/grove/nn"
)

// gptOSS is gpt-oss: experts with biases and a clamped SwiGLU, sinks of attention, a window in every
// other layer. Its folders have experts in an encoding of their own, which grove does not read.
var gptOSS = architecture{
	name:     "gpt-oss",
	keys:     rmsAnd(expertKeys + " expert_feed_forward_length rope.freq_base_swa " + windowPattern),
	defaults: hfConfig{HiddenAct: "silu"},
	top:      llamaTop,
	layer: slices.Concat(
		[]part{attnNorm, {name: "post_attention_norm", as: "ffn_norm", out: hidden}, query, key, value, attnOutput,
			{name: "attn_sinks", out: headCount}},
		expertParts),
	biases: map[string]string{"": "attn_q attn_k attn_v attn_output ffn_gate_inp ffn_gate_exps ffn_up_exps ffn_down_exps"},
	window: 2, experts: "num_local_experts", act: nn.ClampedMul,

	readKeys: func(k *keys, c *Config) {
		c.FFN = k.int("expert_feed_forward_length", c.FFN)
		c.readLocalBase(k)
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("expert_feed_forward_length", uint32(c.FFN))
		writeLocalBase(c, set)
	},
	check: func(c *Config) error {
		if c.Tied || c.Window == 0 {
			return errors.New("GGUF files of gpt-oss have an output matrix beside the embedding, and a sliding window")
		}
		return nil
	},
}
