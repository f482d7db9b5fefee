package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// mimo2 is MiMo-V2-Flash: values narrower than keys; layers with a window have sinks, more key/value heads and
// another base of the rotation; experts are chosen by σ and a bias, after dense first layers.
var mimo2 = architecture{
	name: "mimo2", modelType: "mimo_v2_flash", class: "MiMoV2FlashForCausalLM",
	keys: rmsAnd(expertKeys + ` expert_feed_forward_length expert_gating_func expert_weights_norm expert_weights_scale
		expert_group_count expert_group_used_count rope.freq_base_swa attention.value_scale ` + windowPattern),
	fields: "n_routed_experts moe_layer_freq swa_rope_theta rope_local_base_freq",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 4, HeadDim: 192, ValueDim: 128, Window: 128,
		RoutedExperts: 256, Used: 8, ExpertFFN: 2048, RoutedScale: 1, Groups: 1, TopGroups: 1, NormTopK: true,
		ScoringFunc: sigmoid, TopKMethod: noAuxiliary, ValueScale: 0.707, WindowSinks: true,
		hfRopes: hfRopes{defaultTheta: 5e6}},
	layer: slices.Concat([]part{
		attnNorm, query, key,
		{name: "attn_v", folder: "self_attn.v_proj", out: narrowKeys, in: hidden},
		{name: "attn_output", folder: "self_attn.o_proj", out: hidden, in: narrowQueries},
		{name: "attn_sinks", folder: "self_attn.attention_sink_bias", out: headCount, bare: true, when: (*Config).windowed},
		ffnNorm,
	}, slices.DeleteFunc(grouped(part{folder: "mlp.gate.e_score_correction_bias", when: isSparse}),
		func(p part) bool { return strings.HasSuffix(p.name, "_shexp") })),
	biases:  map[string]string{"attention_bias": "attn_q attn_k attn_v"},
	rotated: 0.334, window: 6, experts: "n_routed_experts",
	narrow: true, varied: true, uncounted: true,

	// Of the layers that draft, the first does, at every depth, as in vLLM. It reads states before the last norm, as in
	// llama.cpp and SGLang; vLLM gives it states after that.
	ahead: func(_ *Config, i int) AheadNames {
		return AheadNames{Start: fmt.Sprintf("%s%d.", mimo2Start, i), Fuse: "eh_proj", Embedding: "enorm", State: "hnorm",
			Output: "final_layernorm", ffnNorm: "pre_mlp_layernorm", Unnormed: true}
	},
	behind: func(b *Config) {
		b.Dense = b.Layers
		b.Windowed = slices.Repeat([]bool{true}, b.Layers)
		b.KVHeads, b.LocalKVHeads = cmp.Or(b.LocalKVHeads, b.KVHeads), 0
	},
	implied: func(c *Config) { c.Rule.Sigmoid, c.Rule.Norm = true, true },
	local:   func(c *Config) { c.setLocalRope(1e4) },
	readKeys: func(k *keys, c *Config) {
		c.ExpertFFN = k.int("expert_feed_forward_length")
		c.ValueDim = k.int("attention.value_length", c.HeadDim)
		c.ValueScale = k.float("attention.value_scale", 0)
		c.countDense(k)
		c.Rule.Scale = unless1(k.float("expert_weights_scale", 0))
		c.Rule.Groups, c.Rule.Chosen = k.int("expert_group_count", 0), k.int("expert_group_used_count", 0)
		c.checkGroups(k)
		c.Rule.Norm = k.bool("expert_weights_norm", true)
		k.wantSigmoid()
		c.setLocalRope(k.float("rope.freq_base_swa", c.Rope.Base))
		c.setKVHeads(k)
		if _, ok := k.list("feed_forward_length"); ok {
			k.refuse("feed_forward_length", "is a list")
		}
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("expert_feed_forward_length", uint32(c.ExpertFFN))
		set("attention.value_length", uint32(c.ValueDim))
		if c.ValueScale != 0 {
			set("attention.value_scale", float32(c.ValueScale))
		}
		set("expert_gating_func", uint32(bySigma))
		set("expert_weights_norm", c.Rule.Norm)
		set("expert_group_count", uint32(max(c.Rule.Groups, 1)))
		set("expert_group_used_count", uint32(max(c.Rule.Chosen, 1)))
		if c.Rule.Scale != 0 {
			set("expert_weights_scale", c.Rule.Scale)
		}
		writeLocalBase(c, set)
		all := *c // with the layers that draft
		all.Windowed = slices.Concat(c.Windowed, slices.Repeat([]bool{true}, c.Ahead))
		list := make([]uint32, c.Layers+c.Ahead)
		for i := range list {
			list[i] = uint32(all.kvHeads(i))
		}
		set("attention.head_count_kv", list)
		set(windowPattern, all.Windowed)
	},
	readFields:  readMiMo2Fields,
	writeFields: writeMiMo2Fields,
	check: func(c *Config) error {
		if c.Tied || c.Window == 0 {
			return errors.New("GGUF files of mimo2 have an output matrix separate from the embedding, and a sliding window")
		}
		return nil
	},
}

// mimo2Start begins the names of the layers that draft.
const mimo2Start = "model.mtp.layers."

// setKVHeads sets the key/value heads of layers without and with a window, which a key lists.
func (c *Config) setKVHeads(k *keys) {
	const key = "attention.head_count_kv"
	list, ok := k.list(key)
	if !ok || c.Layers < 1 {
		return
	}
	if len(list) != c.Layers && len(list) != c.Layers+c.Ahead {
		k.refuse(key, fmt.Sprintf("lists %d layers, but there are %d", len(list), c.Layers))
		return
	}
	c.KVHeads, c.LocalKVHeads = list[c.firstWhole()], 0
	if n := list[c.firstWindowed()]; c.Window > 0 && n != c.KVHeads {
		c.LocalKVHeads = n
	}
	for i, n := range list[:c.Layers] {
		if n != c.kvHeads(i) {
			k.refuse(key, "differs among layers of a kind")
		}
	}
}

// mimoPattern is MiMo-V2-Flash's: the first layer and every sixth have no window.
func mimoPattern(layers int) []bool {
	list := (&architecture{window: 6}).windows(layers)
	list[0] = false
	return list
}

func readMiMo2Fields(h *hfConfig, c *Config) error {
	var pattern []bool
	for _, n := range h.HybridPattern {
		pattern = append(pattern, n == 1)
	}
	if h.LayerTypes == nil {
		c.Window, c.Windowed = int(h.Window), pattern
		if pattern == nil {
			c.Windowed = mimoPattern(c.Layers)
		}
	}
	c.ValueDim, c.ValueScale = h.ValueDim, float64(h.ValueScale)
	c.Rule.Sigmoid, c.Rule.Norm = true, h.NormTopK
	c.Rule.Scale, c.Rule.Groups = unless1(float64(h.RoutedScale)), h.Groups
	c.Rule.Chosen = h.TopGroups
	c.ExpertFFN, c.Dense = int(h.ExpertFFN), 1
	if c.Window > 0 {
		c.setLocalRope(cmp.Or(h.LocalTheta, 1e4))
		if h.WindowTheta != nil {
			c.setLocalRope(*h.WindowTheta)
		}
		if n := cmp.Or(h.LocalKVHeads, 2*c.KVHeads); n != c.KVHeads {
			c.LocalKVHeads = n
		}
	}
	if list, ok := h.Sparse.([]any); ok {
		kinds := make([]string, len(list))
		for i, v := range list {
			kinds[i] = map[bool]string{true: "sparse", false: "dense"}[v == 1.0]
		}
		h.MLPTypes = kinds
	}
	switch {
	case h.LocalTheta != 0 && h.WindowTheta != nil && *h.WindowTheta != h.LocalTheta:
		return errors.New("rope_parameters and swa_rope_theta disagree: leave one of them out")
	case pattern != nil && (len(pattern) != c.Layers || c.Window > 0 && !slices.Equal(pattern, c.Windowed)):
		return fmt.Errorf("hybrid_layer_pattern is %v: want a number for each of %d layers, 1 for those with a window",
			h.HybridPattern, c.Layers)
	case cmp.Or(h.LocalHeads, c.Heads) != c.Heads || cmp.Or(h.LocalHeadDim, c.HeadDim) != c.HeadDim ||
		cmp.Or(h.LocalValueDim, c.ValueDim) != c.ValueDim:
		return errors.New("swa_num_attention_heads, swa_head_dim and swa_v_head_dim: want the values of the other layers")
	case !h.WindowSinks || h.WholeSinks:
		return errors.New("add_swa_attention_sink_bias and add_full_attention_sink_bias: want true and false")
	case h.SharedExperts > 0:
		return fmt.Errorf("n_shared_experts is %d: want none", h.SharedExperts)
	case h.TopKMethod != noAuxiliary:
		return fmt.Errorf("topk_method is %q: want %s", h.TopKMethod, noAuxiliary)
	case h.OtherEps != 0 && h.OtherEps != h.RMSNormEps:
		return fmt.Errorf("layernorm_epsilon is %g and rms_norm_eps %g: want one value", h.OtherEps, h.RMSNormEps)
	}
	return errors.Join(h.wantSigmoid(), h.readMLPTypes(c))
}

// writeMiMo2Fields writes fields as published, which llama.cpp's converter and vLLM read, and those of transformers.
func writeMiMo2Fields(c *Config, m map[string]any) error {
	err := c.writeGroupedFields(m)
	pattern, sparse := make([]int, c.Layers), make([]int, c.Layers)
	kinds := make([]string, c.Layers)
	for i := range pattern {
		kinds[i] = "dense"
		if c.windowed(i) {
			pattern[i] = 1
		}
		if isSparse(c, i) {
			kinds[i], sparse[i] = "sparse", 1
		}
	}
	m["hybrid_layer_pattern"], m["moe_layer_freq"] = pattern, sparse
	m["mlp_layer_types"] = kinds
	m["scoring_func"], m["topk_method"] = sigmoid, noAuxiliary
	m["layernorm_epsilon"], m["attention_value_scale"] = m["rms_norm_eps"], orNull(decimal(c.ValueScale))
	m["v_head_dim"], m["swa_v_head_dim"] = c.ValueDim, c.ValueDim
	m["swa_head_dim"], m["swa_num_attention_heads"] = c.HeadDim, c.Heads
	m["swa_num_key_value_heads"] = c.kvHeads(c.firstWindowed())
	m["add_swa_attention_sink_bias"], m["add_full_attention_sink_bias"] = true, false
	delete(m, "first_k_dense_replace")
	delete(m, "n_shared_experts")
	part := floating(share(c.Rope.Dims, c.HeadDim))
	whole, ok := m["rope_scaling"].(map[string]any)
	if !ok {
		whole = map[string]any{"rope_type": "default"}
	}
	delete(m, "rope_scaling")
	whole["rope_theta"], whole["partial_rotary_factor"] = m["rope_theta"], part
	local := map[string]any{"rope_type": "default", "rope_theta": m["rope_theta"], "partial_rotary_factor": part}
	if c.LocalRope != nil {
		local["rope_theta"] = decimal(c.LocalRope.Base)
	}
	m["partial_rotary_factor"], m["swa_rope_theta"] = part, local["rope_theta"]
	m["rope_parameters"] = map[string]any{"full_attention": whole, "sliding_attention": local}
	return err
}
