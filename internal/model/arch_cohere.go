package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

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

// cohere2moe is Command A+ and North Mini Code: Cohere 2 with experts chosen by σ, after dense first layers, which
// rotate positions in although they have no window. Sums of shared experts and of the others are halved, if there are
// shared ones.
var cohere2moe = func() architecture {
	a := cohere2
	a.name = "cohere2moe"
	a.modelType, a.class = "cohere2_moe", "Cohere2MoeForCausalLM"
	a.keys = ggufkeys.Rules{Obeyed: strings.Fields(expertKeys + ` attention.layer_norm_epsilon logit_scale
		expert_feed_forward_length expert_shared_feed_forward_length expert_shared_count leading_dense_block_count
		expert_gating_func expert_weights_norm expert_weights_scale ` + windowPattern),
		Ignored: []string{"use_parallel_residual"},
		Neutral: map[string][]any{"attention.layer_norm_rms_epsilon": {0}}}
	a.defaults = hfConfig{HiddenAct: "silu", LayerNormEps: 1e-5, Window: 4096, LogitScale: 0.0625, Tied: true, HeadDim: 128,
		Experts: 8, Used: 2, NormTopK: true, SelectionFn: "softmax", Combination: "average", PrefixPattern: 1,
		WindowPattern: 4}
	shared := func(c *Config, layer int) bool { return isSparse(c, layer) && c.SharedFFN > 0 }
	a.layer = slices.Concat([]part{attnNorm, query, key, value, attnOutput}, only(isDense, ffnGate, ffnUp, ffnDown),
		only(isSparse, router, groupedGate, groupedUp, groupedDown), only(shared, sharedGate, sharedUp, sharedDown))
	a.leading, a.averaged = true, true
	a.experts = "num_experts"
	a.implied = func(c *Config) {
		cohere2.implied(c)
		c.Rule.Sigmoid = true
	}
	a.local = func(c *Config) { c.rotatePrefix() }
	a.readKeys = func(k *keys, c *Config) {
		c.LogitScale = 1 / k.float("logit_scale", 0.0625)
		c.Dense = k.int("leading_dense_block_count")
		c.ExpertFFN = k.int("expert_feed_forward_length", c.FFN)
		c.SharedFFN = k.int("expert_shared_feed_forward_length", c.ExpertFFN*k.int("expert_shared_count", 0))
		c.Rule.Norm, c.Rule.Scale = k.bool("expert_weights_norm", false), unless1(k.float("expert_weights_scale", 0))
		k.wantSigmoid()
		switch {
		case c.Dense > c.Layers:
			k.refuse("leading_dense_block_count", fmt.Sprintf("is %d of %d layers", c.Dense, c.Layers))
		case c.Window == 0:
			k.refuse("attention.sliding_window", "is 0, or missing")
		}
		c.rotatePrefix()
	}
	a.writeKeys = func(c *Config, set func(string, any)) {
		cohere2.writeKeys(c, set)
		set("leading_dense_block_count", uint32(c.Dense))
		set("expert_feed_forward_length", uint32(c.ExpertFFN))
		set("expert_gating_func", uint32(bySigma))
		set("expert_weights_norm", c.Rule.Norm)
		set(windowPattern, c.Windowed)
		if c.SharedFFN > 0 {
			set("expert_shared_count", uint32(c.SharedFFN/c.ExpertFFN))
			set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
		}
		if c.Rule.Scale != 0 {
			set("expert_weights_scale", c.Rule.Scale)
		}
	}
	a.readFields = readCohereMoEFields
	a.writeFields = writeCohereMoEFields
	a.check = func(c *Config) error {
		if c.Window == 0 {
			return errors.New("GGUF files of cohere2moe have a sliding window")
		}
		return nil
	}
	return a
}()

// rotatePrefix turns rotation off in layers without a window, except the first, dense ones.
func (c *Config) rotatePrefix() {
	c.rotateLocal()
	clear(c.NoRope[:min(c.Dense, len(c.NoRope))])
}

func readCohereMoEFields(h *hfConfig, c *Config) error {
	c.Parallel, c.LogitScale = true, 1/h.LogitScale
	c.Dense = h.FirstDense
	err := h.readMLPTypes(c)
	c.ExpertFFN, c.SharedFFN = c.FFN, c.FFN*h.NumSharedExperts
	c.FFN = cmp.Or(h.DenseWidth, c.FFN)
	c.Rule.Sigmoid, c.Rule.Norm = true, h.NormTopK
	switch {
	case err != nil:
		return err
	case c.Dense < 0 || c.Dense > c.Layers:
		return fmt.Errorf("first_k_dense_replace is %d: want at most the %d layers", c.Dense, c.Layers)
	case h.NumSharedExperts < 0:
		return fmt.Errorf("num_shared_experts is %d: want 0 or more", h.NumSharedExperts)
	case h.SelectionFn != sigmoid:
		return fmt.Errorf("expert_selection_fn is %q: want %s", h.SelectionFn, sigmoid)
	case h.Combination != "average" && c.SharedFFN > 0:
		return fmt.Errorf("shared_expert_combination_strategy is %q: want average", h.Combination)
	case h.RMSNormEps != 0:
		return fmt.Errorf("rms_norm_eps is %g: want null, and layer_norm_eps", h.RMSNormEps)
	case h.PrefixPattern != 1 && c.Dense > 0:
		return fmt.Errorf("prefix_dense_sliding_window_pattern is %d: want 1", h.PrefixPattern)
	case h.LayerTypes == nil && c.Window > 0:
		if h.WindowPattern < 1 {
			return fmt.Errorf("sliding_window_pattern is %d: want a positive number", h.WindowPattern)
		}
		for i := range c.Windowed {
			c.Windowed[i] = i >= c.Dense && (i-c.Dense+1)%int(h.WindowPattern) != 0
		}
	}
	c.rotatePrefix()
	return nil
}

func writeCohereMoEFields(c *Config, m map[string]any) error {
	m["layer_types"], m["first_k_dense_replace"] = c.attentionKinds(), c.Dense
	m["intermediate_size"], m["prefix_dense_intermediate_size"] = c.ExpertFFN, c.FFN
	m["num_shared_experts"], m["shared_expert_combination_strategy"] = c.SharedFFN/c.ExpertFFN, "average"
	m["expert_selection_fn"], m["norm_topk_prob"] = sigmoid, c.Rule.Norm
	err := cohere2.writeFields(c, m)
	if c.Rule.Scale != 0 {
		err = errors.Join(err, fmt.Errorf("key expert_weights_scale is %g: config.json of cohere2_moe cannot express it",
			c.Rule.Scale))
	}
	return err
}
