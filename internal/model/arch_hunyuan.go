package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// hunyuan is Tencent's dense Hunyuan: queries and keys are normalised after rotation.
var hunyuan = architecture{
	name: "hunyuan-dense", modelType: "hunyuan_v1_dense", class: "HunYuanDenseV1ForCausalLM",
	keys: rmsKeys, fields: alphaField,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5},
	prefix:   layersPrefix, top: llamaTop,
	layer:    slices.Concat(hunyuanAttention, []part{ffnGate, ffnUp, ffnDown}),
	biases:   map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	normLast: true,
}

var hunyuanAttention = []part{
	attnNorm, ffnNorm,
	{name: "attn_k_norm", folder: "self_attn.key_layernorm", out: head},
	{name: "attn_q_norm", folder: "self_attn.query_layernorm", out: head},
	query, key, value, attnOutput,
}

// hunyuanMoE is Hunyuan A13B: the same with experts in all layers, alongside one of their width that all rows use.
var hunyuanMoE = architecture{
	name: "hunyuan-moe", modelType: "hunyuan_v1_moe", class: "HunYuanMoEV1ForCausalLM",
	keys: func() (r ggufkeys.Rules) {
		r = rmsAnd(expertKeys + " expert_feed_forward_length expert_shared_feed_forward_length")
		r.Ignored = append(strings.Fields("expert_shared_count"), r.Ignored...)
		return r
	}(),
	fields:   alphaField,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, Experts: 1, MoETopK: 1},
	prefix:   layersPrefix, top: llamaTop,
	layer: slices.Concat(hunyuanAttention, []part{
		{name: "ffn_gate_inp", folder: "mlp.gate.wg", out: experts, in: hidden},
		expertGate, expertUp, expertDown,
		{name: "ffn_gate_shexp", folder: "mlp.shared_mlp.gate_proj", out: sharedInner, in: hidden},
		{name: "ffn_up_shexp", folder: "mlp.shared_mlp.up_proj", out: sharedInner, in: hidden},
		{name: "ffn_down_shexp", folder: "mlp.shared_mlp.down_proj", out: hidden, in: sharedInner},
	}),
	biases:   hunyuan.biases,
	normLast: true, experts: "num_experts",

	readKeys: func(k *keys, c *Config) {
		c.FFN = k.int("expert_feed_forward_length", c.FFN)
		c.SharedFFN = k.int("expert_shared_feed_forward_length", c.FFN)
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("expert_feed_forward_length", uint32(c.FFN))
		set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
	},
	readFields: func(_ *hfConfig, c *Config) error {
		c.SharedFFN = c.FFN
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		delete(m, "num_experts_per_tok")
		m["moe_topk"] = slices.Repeat([]int{c.Used}, c.Layers)
		m["moe_intermediate_size"] = slices.Repeat([]int{c.FFN}, c.Layers)
		m["num_shared_expert"] = slices.Repeat([]int{1}, c.Layers)
		if c.SharedFFN != c.FFN {
			return fmt.Errorf("key expert_shared_feed_forward_length is %d, and feed_forward_length %d: "+
				"config.json of %s has one number for both", c.SharedFFN, c.FFN, c.Arch)
		}
		return nil
	},
}
