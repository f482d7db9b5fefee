package model

import (
	"errors"
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

// hyV3 is Tencent's Hy3: experts chosen by σ and a bias, alongside one that all rows use, after dense first layers.
// GGUF files do not say how many these are.
var hyV3 = architecture{
	name: "hy_v3", modelType: "hy_v3", class: "HYV3ForCausalLM",
	keys: rmsAnd(expertKeys + ` expert_feed_forward_length expert_shared_feed_forward_length expert_gating_func
		expert_weights_norm expert_weights_scale`),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8, HeadDim: 128, Experts: 192, Used: 8,
		NumSharedExperts: 1, ExpertFFN: 1536, FirstDense: 1, RouterScale: 2.826, RouteNorm: true,
		hfRopes: hfRopes{defaultTheta: 11158840}},
	layer: slices.Concat([]part{attnNorm, query, key, value, attnOutput, queryNorm, keyNorm, ffnNorm},
		hyExperts(grouped(part{folder: "mlp.expert_bias", when: isSparse}))),
	biases: map[string]string{
		"attention_bias": "attn_q attn_k attn_v attn_output",
		"mlp_bias":       "ffn_gate ffn_up ffn_down ffn_gate_shexp ffn_up_shexp ffn_down_shexp",
	},
	experts: "num_experts",

	ahead: func(c *Config, i int) AheadNames {
		names := numberedAhead(c, i)
		names.Output = "final_layernorm"
		names.Embed, names.Head = "", ""
		return names
	},
	implied: func(c *Config) { c.Rule.Sigmoid, c.Rule.Norm = true, true },
	readKeys: func(k *keys, c *Config) {
		c.countDense(k)
		c.ExpertFFN = k.int("expert_feed_forward_length")
		c.SharedFFN = k.int("expert_shared_feed_forward_length", c.ExpertFFN)
		c.checkGrouped(k, "expert_shared_feed_forward_length")
		c.Rule.Scale = unless1(k.float("expert_weights_scale", 0))
		k.wantSigmoid()
		if !k.bool("expert_weights_norm", true) {
			k.refuse("expert_weights_norm", "is false")
		}
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("expert_feed_forward_length", uint32(c.ExpertFFN))
		set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
		set("expert_gating_func", uint32(bySigma))
		set("expert_weights_norm", true)
		if c.Rule.Scale != 0 {
			set("expert_weights_scale", c.Rule.Scale)
		}
	},
	readFields: func(h *hfConfig, c *Config) error {
		if !h.RouteNorm {
			return errors.New("route_norm is false: want true")
		}
		h.SharedExperts, h.RoutedScale = h.NumSharedExperts, h.RouterScale
		h.NormTopK = true
		c.Rule.Sigmoid = true
		return errors.Join(h.readGrouped(c), h.readMLPTypes(c))
	},
	writeFields: func(c *Config, m map[string]any) error {
		err := c.writeGroupedFields(m)
		m["num_shared_experts"], m["router_scaling_factor"] = m["n_shared_experts"], m["routed_scaling_factor"]
		for _, name := range []string{"n_shared_experts", "routed_scaling_factor", "norm_topk_prob", "n_group", "topk_group"} {
			delete(m, name)
		}
		m["mlp_layer_types"] = slices.Concat(slices.Repeat([]string{"dense"}, c.Dense),
			slices.Repeat([]string{"sparse"}, c.Layers-c.Dense))
		if c.SharedFFN%c.ExpertFFN != 0 {
			err = fmt.Errorf("key expert_shared_feed_forward_length is %d: config.json can express only multiples of %d",
				c.SharedFFN, c.ExpertFFN)
		}
		return err
	},
}

// countDense counts the first layers without experts, where only the tensors of a GGUF file say it.
func (c *Config) countDense(k *keys) {
	c.Dense = 0
	for c.Dense < c.Layers && !k.HasTensor(fmt.Sprintf("blk.%d%s", c.Dense, RouterName)) {
		c.Dense++
	}
}

// wantSigmoid refuses scores of experts that are not σ. Files may lack the key.
func (k *keys) wantSigmoid() {
	if n := k.int("expert_gating_func", bySigma); n != bySigma {
		k.refuse("expert_gating_func", fmt.Sprintf("is %d, not %d", n, bySigma))
	}
}

// hyExperts gives parts of grouped experts Hy3's names.
func hyExperts(parts []part) []part {
	for i := range parts {
		p := &parts[i]
		p.folder = strings.Replace(p.folder, "mlp.shared_experts.", "mlp.shared_mlp.", 1)
		switch p.name {
		case "ffn_gate_inp":
			p.folder = "mlp.router.gate"
		case "exp_probs_b":
			p.ending, p.whole = "", true
		}
	}
	return parts
}
