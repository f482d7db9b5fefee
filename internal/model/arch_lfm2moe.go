package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// lfm2moe is LFM2 with experts, chosen by σ and a bias, after dense first layers.
var lfm2moe = func() architecture {
	a := lfm2
	a.name = "lfm2moe"
	a.modelType, a.class = "lfm2_moe", "Lfm2MoeForCausalLM"
	a.keys = rmsAnd("shortconv.l_cache expert_feed_forward_length leading_dense_block_count expert_gating_func " + expertKeys)
	a.keys.Ignored = append(slices.Clone(a.keys.Ignored), "expert_weights_norm") // weights always add up to 1
	a.fields = strings.Join([]string{a.fields, "num_experts"}, " ")
	a.experts = "num_experts"
	a.defaults.AdjustFFN = false
	a.defaults.Experts, a.defaults.Used = 32, 4
	a.defaults.ExpertFFN = 1792
	a.defaults.LeadingDense = 2
	a.defaults.NormTopK, a.defaults.ExpertBias = true, true
	a.defaults.RoutedScale = 1
	a.layer = slices.Concat(a.layer[:len(a.layer)-3], only(isDense, a.layer[len(a.layer)-3:]...), only(isSparse,
		part{name: "ffn_gate_inp", folder: "feed_forward.gate", out: experts, in: hidden},
		part{name: "exp_probs_b", ending: ".bias", folder: "feed_forward.expert_bias", bare: true, out: experts},
		part{name: "ffn_gate_exps", folder: "feed_forward.experts.*.w1", out: expertInner, in: hidden, each: true},
		part{name: "ffn_up_exps", folder: "feed_forward.experts.*.w3", out: expertInner, in: hidden, each: true},
		part{name: "ffn_down_exps", folder: "feed_forward.experts.*.w2", out: hidden, in: expertInner, each: true}))
	a.implied = func(c *Config) { c.Rule.Sigmoid, c.Rule.Norm = true, true }

	a.readKeys = func(k *keys, c *Config) {
		lfm2.readKeys(k, c)
		c.ExpertFFN, c.Dense = k.int("expert_feed_forward_length"), k.int("leading_dense_block_count", 0)
		k.wantSigmoid()
	}
	a.writeKeys = func(c *Config, set func(string, any)) {
		lfm2.writeKeys(c, set)
		set("expert_feed_forward_length", uint32(c.ExpertFFN))
		set("leading_dense_block_count", uint32(c.Dense))
		set("expert_gating_func", uint32(bySigma))
	}
	a.readFields = func(h *hfConfig, c *Config) error {
		c.ExpertFFN, c.Dense = int(h.ExpertFFN), h.LeadingDense
		c.Rule.Sigmoid, c.Rule.Norm = true, true
		switch {
		case !h.NormTopK:
			return errors.New("norm_topk_prob is false, which GGUF files of lfm2moe cannot express: want true")
		case !h.ExpertBias:
			return errors.New("use_expert_bias is false: want true, biases for choosing experts")
		case h.RoutedScale != 1:
			return fmt.Errorf("routed_scaling_factor is %g, which GGUF files of lfm2moe cannot express: want 1", h.RoutedScale)
		}
		return lfm2.readFields(h, c)
	}
	a.writeFields = func(c *Config, m map[string]any) error {
		m["moe_intermediate_size"], m["num_dense_layers"] = c.ExpertFFN, c.Dense
		m["norm_topk_prob"], m["use_expert_bias"] = true, true
		return lfm2.writeFields(c, m)
	}
	return a
}()
