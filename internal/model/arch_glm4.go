package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// glm4 is GLM-4-0414: norms before and after each half, gate and up in one tensor, half of each
// head rotated.
var glm4 = architecture{
	name: "glm4", modelType: "glm4", class: "Glm4ForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1.5625e-7, KVHeads: 2, HeadDim: 128},
	layer: []part{
		attnNorm, query, key, value, attnOutput,
		{name: "post_attention_norm", folder: "post_self_attn_layernorm", out: hidden},
		ffnNorm,
		{name: "ffn_up", folder: "mlp.gate_up_proj", out: inner2, in: hidden}, // the gate's rows come first
		ffnDown,
		{name: "post_ffw_norm", folder: "post_mlp_layernorm", out: hidden},
	},
	biases:     map[string]string{"attention_bias": "attn_q attn_k attn_v"},
	neighbours: true, interleaved: true, rotated: 0.5,

	writeFields: writeRotatedShare,
}

// chatglm is GLM-4-9B of the first kind, and ChatGLM in GGUF files: the same without norms after each half.
var chatglm = func() architecture {
	a := glm4
	a.name, a.modelType = "chatglm", "glm"
	a.class = "GlmForCausalLM"
	a.layer = slices.DeleteFunc(slices.Clone(glm4.layer), func(p part) bool { return strings.HasPrefix(p.name, "post_") })
	a.defaults.AttentionBias = true
	a.square = true
	a.writeFields = func(c *Config, m map[string]any) error {
		m["head_dim"] = c.HeadDim
		return writeRotatedShare(c, m)
	}
	return a
}()

// writeRotatedShare writes the share of each head that is rotated.
func writeRotatedShare(c *Config, m map[string]any) error {
	m["partial_rotary_factor"] = floating(share(c.Rope.Dims, c.HeadDim))
	return nil
}

// glm4moe is GLM-4.5, 4.6 and 4.7: experts chosen by σ and a bias, alongside a shared one that all
// rows use, after dense first layers; half of each head is rotated.
var glm4moe = architecture{
	name: "glm4moe", modelType: "glm4_moe", class: "Glm4MoeForCausalLM",
	keys:   rmsAnd(groupedKeys),
	fields: "n_routed_experts",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8, RoutedExperts: 128, Used: 8,
		ExpertFFN: 1408, SharedExperts: 1,
		FirstDense: 1, RoutedScale: 1, Groups: 1, TopGroups: 1, NormTopK: true},
	layer: slices.Concat(
		[]part{
			attnNorm,
			{name: "post_attention_norm", folder: "post_attention_layernorm", as: "ffn_norm", out: hidden},
			{name: "attn_q_norm", folder: "self_attn.q_norm", out: head, when: withHeadNorms},
			{name: "attn_k_norm", folder: "self_attn.k_norm", out: head, when: withHeadNorms},
			query, key, value, attnOutput,
		}, groupedParts),
	biases:  map[string]string{"attention_bias": "attn_q attn_k attn_v"},
	rotated: 0.5, experts: "n_routed_experts", ahead: numberedAhead,
	implied: func(c *Config) { c.Rule.Sigmoid = true },

	readKeys: func(k *keys, c *Config) {
		c.readGrouped(k)
		c.HeadNorms = k.HasTensor("blk.0.attn_q_norm.weight")
	},
	writeKeys: func(c *Config, set func(string, any)) { c.writeGrouped(set) },
	readFields: func(h *hfConfig, c *Config) error {
		c.HeadNorms, c.Rule.Sigmoid = h.HeadNorms, true
		return h.readGrouped(c)
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["use_qk_norm"] = c.HeadNorms
		return errors.Join(writeRotatedShare(c, m), c.writeGroupedFields(m))
	},
}

// dots1 is dots.llm1: the same experts, all dimensions of a head rotated.
var dots1 = architecture{
	name: "dots1", modelType: "dots1", class: "Dots1ForCausalLM",
	keys:   rmsAnd(groupedKeys),
	fields: "n_routed_experts",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 32, RoutedScale: 1, Groups: 1, TopGroups: 1,
		ScoringFunc: sigmoid},
	layer: slices.Concat([]part{attnNorm, ffnNorm, queryNorm, keyNorm, query, key, value, attnOutput},
		groupedParts),
	biases:  map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	experts: "n_routed_experts",

	implied:   func(c *Config) { c.Rule.Sigmoid = true },
	readKeys:  func(k *keys, c *Config) { c.readGrouped(k) },
	writeKeys: func(c *Config, set func(string, any)) { c.writeGrouped(set) },
	readFields: func(h *hfConfig, c *Config) error {
		c.Rule.Sigmoid = true
		return errors.Join(h.wantSigmoid(), h.readGrouped(c))
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["scoring_func"] = sigmoid
		return c.writeGroupedFields(m)
	},
}

// deepseek is DeepSeek's first model with experts: Llama's attention, and experts chosen by a softmax.
var deepseek = architecture{
	name: "deepseek", modelType: "deepseek", class: "DeepseekForCausalLM",
	keys: func() ggufkeys.Rules {
		r := rmsAnd(expertKeys + " expert_feed_forward_length expert_shared_count leading_dense_block_count expert_weights_scale")
		r.Neutral = map[string][]any{"expert_gating_func": {0, bySoftmax}, "expert_group_count": {0, 1},
			"expert_group_used_count": {0, 1}}
		return r
	}(),
	fields:     "n_routed_experts",
	defaults:   hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, RoutedScale: 1, ScoringFunc: softmax},
	layer:      slices.Concat(llamaLayer[:len(llamaLayer)-3], groupedParts),
	biases:     map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	neighbours: true, square: true, experts: "n_routed_experts", softmaxAll: true,

	readKeys:  func(k *keys, c *Config) { c.readGrouped(k) },
	writeKeys: func(c *Config, set func(string, any)) { c.writeGrouped(set) },
	readFields: func(h *hfConfig, c *Config) error {
		if h.ScoringFunc != softmax || h.NormTopK {
			return fmt.Errorf("scoring_func is %q and norm_topk_prob %t: want softmax and false", h.ScoringFunc, h.NormTopK)
		}
		h.RoutedScale = 1 // the published class does not read it
		return h.readGrouped(c)
	},
	writeFields: func(c *Config, m map[string]any) error {
		err := c.writeGroupedFields(m)
		m["scoring_func"] = softmax
		if c.Rule.Scale != 0 {
			err = fmt.Errorf("key expert_weights_scale is %g: config.json of deepseek cannot express it", c.Rule.Scale)
		}
		return err
	},
}

// wantSigmoid refuses scores of experts that are not σ.
func (h *hfConfig) wantSigmoid() error {
	if h.ScoringFunc != sigmoid {
		return fmt.Errorf("scoring_func is %q: want %s", h.ScoringFunc, sigmoid)
	}
	return nil
}

func withHeadNorms(c *Config, _ int) bool { return c.HeadNorms }

// groupedKeys are the keys of grouped experts after dense first layers, alongside a shared one that all rows use.
const groupedKeys = expertKeys + ` expert_feed_forward_length expert_shared_count leading_dense_block_count expert_gating_func
	expert_weights_norm expert_weights_scale expert_group_count expert_group_used_count`

func isDense(c *Config, layer int) bool { return layer < c.Dense }

func isSparse(c *Config, layer int) bool { return layer >= c.Dense }

// groupedParts are the MLPs of the first layers, and the experts of the others. Experts chosen by σ have a bias.
var groupedParts = grouped(part{folder: "mlp.gate.e_score_correction_bias",
	when: func(c *Config, layer int) bool { return layer >= c.Dense && c.Rule.Sigmoid }})

// grouped returns the same parts with another bias, which is added when experts are chosen.
func grouped(bias part) []part {
	bias.name = "exp_probs_b"
	bias.ending = ".bias"
	bias.bare = true
	bias.out = experts
	return slices.Concat(only(isDense, ffnGate, ffnUp, ffnDown), only(isSparse, router), []part{bias},
		only(isSparse, groupedGate, groupedUp, groupedDown, sharedGate, sharedUp, sharedDown))
}

var (
	groupedGate = part{name: "ffn_gate_exps", folder: "mlp.experts.*.gate_proj", out: expertInner, in: hidden, each: true}
	groupedUp   = part{name: "ffn_up_exps", folder: "mlp.experts.*.up_proj", out: expertInner, in: hidden, each: true}
	groupedDown = part{name: "ffn_down_exps", folder: "mlp.experts.*.down_proj", out: hidden, in: expertInner, each: true}
	sharedGate  = part{name: "ffn_gate_shexp", folder: "mlp.shared_experts.gate_proj", out: sharedInner, in: hidden}
	sharedUp    = part{name: "ffn_up_shexp", folder: "mlp.shared_experts.up_proj", out: sharedInner, in: hidden}
	sharedDown  = part{name: "ffn_down_shexp", folder: "mlp.shared_experts.down_proj", out: hidden, in: sharedInner}
)

// only restricts parts to some layers.
func only(when func(c *Config, layer int) bool, parts ...part) (list []part) {
	for _, p := range parts {
		p.when = when
		list = append(list, p)
	}
	return list
}

// bySoftmax and bySigma are the values of expert_gating_func for a softmax over all experts and for σ.
const bySoftmax, bySigma = 1, 2

func (c *Config) readGrouped(k *keys) {
	c.Dense = k.int("leading_dense_block_count", 0)
	c.ExpertFFN = k.int("expert_feed_forward_length")
	c.SharedFFN = c.ExpertFFN * k.int("expert_shared_count", 0)
	c.Rule.Norm = k.bool("expert_weights_norm", false)
	c.Rule.Scale = unless1(k.float("expert_weights_scale", 0))
	c.Rule.Groups, c.Rule.Chosen = k.int("expert_group_count", 0), k.int("expert_group_used_count", 0)
	sigma, def := c.Rule.Sigmoid, bySoftmax
	if sigma {
		def = bySigma
	}
	n := k.int("expert_gating_func", def)
	c.Rule.Sigmoid, c.Rule.All = n == bySigma, n == bySoftmax
	if n != bySigma && (sigma || n != bySoftmax) {
		k.refuse("expert_gating_func", fmt.Sprintf("is %d, not %d", n, bySigma))
	}
	c.checkGrouped(k, "expert_shared_count")
	c.checkGroups(k)
}

// checkGrouped refuses too many first layers, and a lack of shared experts, whose number is in the key shared.
func (c *Config) checkGrouped(k *keys, shared string) {
	switch {
	case c.SharedFFN <= 0:
		k.refuse(shared, "is 0")
	case c.Dense > c.Layers:
		k.refuse("leading_dense_block_count", fmt.Sprintf("is %d of %d layers", c.Dense, c.Layers))
	}
}

// checkGroups refuses groups of experts that make no sense.
func (c *Config) checkGroups(k *keys) {
	groups, chosen := max(c.Rule.Groups, 1), max(c.Rule.Chosen, 1)
	if c.Experts%groups != 0 || chosen > groups || c.Used > c.Experts/groups*chosen {
		k.refuse("expert_group_count", fmt.Sprintf("is %d and key %q is %d, with %d experts, of which %d are used",
			groups, k.name("expert_group_used_count"), chosen, c.Experts, c.Used))
	}
}

func (c *Config) writeGrouped(set func(string, any)) {
	set("leading_dense_block_count", uint32(c.Dense))
	set("expert_feed_forward_length", uint32(c.ExpertFFN))
	set("expert_shared_count", uint32(c.SharedFFN/c.ExpertFFN))
	gating := uint32(bySoftmax)
	if c.Rule.Sigmoid {
		gating = bySigma
	}
	set("expert_gating_func", gating)
	set("expert_weights_norm", c.Rule.Norm)
	set("expert_group_count", uint32(max(c.Rule.Groups, 1)))
	set("expert_group_used_count", uint32(max(c.Rule.Chosen, 1)))
	if c.Rule.Scale != 0 {
		set("expert_weights_scale", c.Rule.Scale)
	}
}

func (h *hfConfig) readGrouped(c *Config) error {
	if h.SharedExperts < 1 {
		return errors.New("n_shared_experts: want 1 or more")
	}
	c.Dense = h.FirstDense
	c.ExpertFFN = int(h.ExpertFFN)
	c.SharedFFN = c.ExpertFFN * h.SharedExperts
	c.Rule.Norm, c.Rule.Scale = h.NormTopK, unless1(h.RoutedScale)
	c.Rule.Groups, c.Rule.Chosen = h.Groups, h.TopGroups
	return nil
}

func (c *Config) writeGroupedFields(m map[string]any) error {
	m["first_k_dense_replace"], m["moe_intermediate_size"] = c.Dense, c.ExpertFFN
	m["n_shared_experts"], m["norm_topk_prob"] = c.SharedFFN/c.ExpertFFN, c.Rule.Norm
	m["n_group"], m["topk_group"] = max(c.Rule.Groups, 1), max(c.Rule.Chosen, 1)
	m["routed_scaling_factor"] = floating(1)
	if c.Rule.Scale != 0 {
		m["routed_scaling_factor"] = floating(decimal(float64(c.Rule.Scale)))
	}
	return nil
}
