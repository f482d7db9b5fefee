package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// afmoe is Arcee's Trinity: experts chosen by σ and a bias, after dense first layers; attention's results
// are multiplied by σ of gates, and three of four layers have windows; only these rotate positions in.
var afmoe = architecture{
	name: "afmoe", modelType: "afmoe", class: "AfmoeForCausalLM",
	keys: rmsAnd(groupedKeys),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, HeadDim: 128, Window: 1024, Experts: 64, Used: 6,
		ExpertFFN: 1408, NumSharedExperts: 2, LeadingDense: 1, RouteScale: 1, RouteNorm: true, GlobalEvery: 4},
	layer: slices.Concat([]part{
		attnNorm, query, key, value, attnOutput,
		{name: "attn_gate", folder: "self_attn.gate_proj", out: queries, in: hidden},
		queryNorm, keyNorm, attnPost,
		{name: "ffn_norm", folder: "pre_mlp_layernorm", out: hidden},
	}, routedBy("mlp.router.gate", grouped(part{folder: "mlp.expert_bias", when: isSparse})), []part{
		{name: "post_ffw_norm", folder: "post_mlp_layernorm", out: hidden},
	}),
	biases: map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	window: 4, listed: true, experts: "num_experts",

	implied: func(c *Config) {
		c.EmbedScale = math.Sqrt(float64(c.Hidden))
		c.Rule.Sigmoid = true
	},
	local: func(c *Config) { c.rotateLocal() },
	readKeys: func(k *keys, c *Config) {
		c.readGrouped(k)
		c.rotateLocal()
	},
	writeKeys: func(c *Config, set func(string, any)) { c.writeGrouped(set) },
	readFields: func(h *hfConfig, c *Config) error {
		if h.LayerTypes == nil && c.Window > 0 && h.GlobalEvery > 0 {
			c.Windowed = (&architecture{window: h.GlobalEvery}).windows(c.Layers)
		}
		c.rotateLocal()
		c.EmbedScale = math.Sqrt(float64(c.Hidden))
		c.Rule.Sigmoid = true
		h.SharedExperts, h.FirstDense = h.NumSharedExperts, h.LeadingDense
		h.NormTopK, h.RoutedScale = true, h.RouteScale
		switch {
		case !h.EmbedRoot:
			return errors.New("mup_enabled is false: want true, embeddings scaled by the root of the width")
		case !h.RouteNorm:
			return errors.New("route_norm is false: want true")
		case h.Groups > 1:
			return fmt.Errorf("n_group is %d: want 1, experts without groups", h.Groups)
		}
		return h.readGrouped(c)
	},
	writeFields: func(c *Config, m map[string]any) error {
		err := c.writeGroupedFields(m)
		m["num_shared_experts"], m["num_dense_layers"] = m["n_shared_experts"], m["first_k_dense_replace"]
		m["route_scale"], m["route_norm"] = m["routed_scaling_factor"], m["norm_topk_prob"]
		m["mup_enabled"] = true
		for _, name := range []string{"n_shared_experts", "first_k_dense_replace", "routed_scaling_factor", "norm_topk_prob",
			"n_group", "topk_group"} {
			delete(m, name)
		}
		switch {
		case !c.Rule.Norm:
			return errors.New("key expert_weights_norm is false: config.json of afmoe cannot express it")
		case c.Rule.Groups > 1:
			return fmt.Errorf("key expert_group_count is %d: config.json of afmoe cannot express it", c.Rule.Groups)
		}
		return err
	},
	check: threeOfFour,
}

// routedBy gives the part that chooses experts a different name in folders.
func routedBy(folder string, parts []part) []part {
	at := slices.IndexFunc(parts, func(p part) bool { return p.name == router.name })
	parts[at].folder = folder
	return parts
}
