package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

const expertKeys = "expert_count expert_used_count"

// mixtral is Mixtral: Mistral with experts. Its GGUF files call it llama.
var mixtral = architecture{
	name: "llama", modelType: "mixtral", class: "MixtralForCausalLM",
	keys: rmsAnd(expertKeys),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8, LocalExperts: 8, Used: 2,
		hfRopes: hfRopes{defaultTheta: 1e6}},
	layer: []part{
		attnNorm, ffnNorm, query, key, value, attnOutput,
		{name: "ffn_gate_inp", folder: "block_sparse_moe.gate", out: experts, in: hidden},
		{name: "ffn_gate_exps", folder: "block_sparse_moe.experts.*.w1", out: inner, in: hidden, each: true},
		{name: "ffn_up_exps", folder: "block_sparse_moe.experts.*.w3", out: inner, in: hidden, each: true},
		{name: "ffn_down_exps", folder: "block_sparse_moe.experts.*.w2", out: hidden, in: inner, each: true},
	},
	neighbours: true, window: 1, listed: true, experts: "num_local_experts",
}

// qwen3moe is Qwen 3 with experts in all layers.
var qwen3moe = architecture{
	name: "qwen3moe", modelType: "qwen3_moe", class: "Qwen3MoeForCausalLM",
	images: "qwen3vlmoe",
	keys:   rmsAnd(expertKeys + " expert_feed_forward_length"),
	fields: "num_local_experts", // transformers 5's name for num_experts
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 4, Experts: 128, Used: 8, ExpertFFN: 768,
		IntermediateSize: 6144, SparseStep: 1},
	layer:   slices.Concat(qwen3.layer[:len(qwen3.layer)-3], expertParts),
	biases:  qwen3.biases,
	experts: "num_experts",

	readKeys: func(k *keys, c *Config) {
		c.FFN = k.int("expert_feed_forward_length", c.FFN/max(c.Used, 1))
	},
	writeKeys: func(c *Config, set func(string, any)) { set("expert_feed_forward_length", uint32(c.FFN)) },
	readFields: func(h *hfConfig, c *Config) error {
		c.FFN = int(h.ExpertFFN)
		switch {
		case h.SparseStep != 1:
			return fmt.Errorf("decoder_sparse_step is %d: want 1, experts in all layers", h.SparseStep)
		case len(h.DenseLayers) > 0:
			return fmt.Errorf("mlp_only_layers is %v: want none, experts in all layers", h.DenseLayers)
		case !h.NormTopK:
			return errors.New("norm_topk_prob is false, which GGUF files of qwen3moe cannot express: want true")
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["moe_intermediate_size"] = c.FFN
		m["norm_topk_prob"] = true
		m["decoder_sparse_step"] = 1
		return nil
	},
}

// qwen3vlMoE is the text model of Qwen3-VL with experts, as folders have it: all experts in a tensor, transposed.
var qwen3vlMoE = func() architecture {
	a := qwen3moe
	a.modelType, a.images = "qwen3_vl_moe_text", "qwen3_vl_moe_text"
	a.defaults.KVHeads, a.defaults.ExpertFFN = 16, 1408
	a.defaults.Experts, a.defaults.Used = 60, 4
	a.defaults.NormTopK = true // transformers always normalises
	a.layer = slices.Concat(qwen3.layer[:len(qwen3.layer)-3], []part{router,
		expertGate.transposed("mlp.experts.gate_up_proj", 1),
		expertUp.transposed("mlp.experts.gate_up_proj", 2),
		expertDown.transposed("mlp.experts.down_proj", 0)})
	a.readFields = func(h *hfConfig, c *Config) error {
		c.Folder = h.ModelType
		return qwen3moe.readFields(h, c)
	}
	return a
}()

// transposed is the part where folders have all experts in a tensor of inputs × outputs, or beside another in it.
func (p part) transposed(folder string, half int) part {
	p.folder, p.half = folder, half
	p.param, p.sides = true, true
	return p
}

// mellum is JetBrains' Mellum 2: Qwen 3 with experts, and a window in three of four layers, which do not scale
// positions. llama.cpp rotates them with the base of the others.
var mellum = func() architecture {
	a := qwen3moe
	a.name = "mellum"
	a.modelType, a.class = "mellum", "MellumForCausalLM"
	a.images = ""
	a.keys = rmsAnd(expertKeys + " expert_feed_forward_length rope.freq_base_swa " + windowPattern)
	a.fields += " rope_local_base_freq" // only in rope_parameters
	a.defaults.Experts, a.defaults.ExpertFFN = 64, 896
	a.defaults.NormTopK = true
	a.defaults.HeadDim, a.defaults.Window = 128, 1024
	a.defaults.defaultTheta = 5e5
	a.window, a.local = 4, olmo2.local
	a.readKeys = func(k *keys, c *Config) {
		qwen3moe.readKeys(k, c)
		olmo2.readKeys(k, c)
	}
	a.writeKeys = func(c *Config, set func(string, any)) {
		qwen3moe.writeKeys(c, set)
		olmo2.writeKeys(c, set)
		if c.Window > 0 {
			set(windowPattern, c.Windowed)
		}
	}
	a.readFields = func(h *hfConfig, c *Config) error {
		c.setLocalRope(cmp.Or(h.LocalTheta, c.Rope.Base))
		if i := slices.IndexFunc(h.MLPTypes, func(kind string) bool { return kind != "sparse" }); i >= 0 {
			return fmt.Errorf("mlp_layer_types has %q: want sparse, experts in all layers", h.MLPTypes[i])
		}
		return qwen3moe.readFields(h, c)
	}
	a.writeFields = func(c *Config, m map[string]any) error {
		whole, ok := m["rope_scaling"].(map[string]any)
		if !ok {
			whole = map[string]any{"rope_type": "default"}
		}
		whole["rope_theta"] = m["rope_theta"]
		delete(m, "rope_scaling")
		delete(m, "rope_theta")
		ropes := map[string]any{"full_attention": whole}
		if c.LocalRope != nil {
			ropes["sliding_attention"] = map[string]any{"rope_type": "default", "rope_theta": decimal(c.LocalRope.Base)}
		}
		m["rope_parameters"] = ropes
		return qwen3moe.writeFields(c, m)
	}
	a.check = olmoCheck
	return a
}()

// granitemoe is Granite 3 with experts.
var granitemoe = architecture{
	name: "granitemoe", modelType: "granitemoe", class: "GraniteMoeForCausalLM",
	keys: func() (r ggufkeys.Rules) {
		r = graniteKeys
		r.Obeyed = slices.Concat(r.Obeyed, strings.Fields(expertKeys))
		return r
	}(),
	fields: granite.fields,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, LocalExperts: 8, Used: 2,
		AttnMultiplier: 1, EmbedMultiplier: 1, ResidualMultiplier: 1, LogitsScaling: 1},
	layer: []part{
		attnNorm, ffnNorm, query, key, value, attnOutput,
		{name: "ffn_gate_inp", folder: "block_sparse_moe.router.layer", out: experts, in: hidden},
		{name: "ffn_gate_exps", folder: "block_sparse_moe.input_linear", out: inner, in: hidden, half: 1, each: true},
		{name: "ffn_up_exps", folder: "block_sparse_moe.input_linear", out: inner, in: hidden, half: 2, each: true},
		{name: "ffn_down_exps", folder: "block_sparse_moe.output_linear", out: hidden, in: inner, each: true},
	},
	biases:     map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	neighbours: true, square: true, experts: "num_local_experts",

	readKeys: readGraniteKeys, writeKeys: granite.writeKeys,
	readFields: granite.readFields, writeFields: granite.writeFields,
}

// olmoe is OLMoE: experts whose weights do not add up to 1, and norms of queries and keys across
// all heads.
var olmoe = architecture{
	name: "olmoe", modelType: "olmoe", class: "OlmoeForCausalLM",
	keys:     rmsAnd(expertKeys),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, Experts: 64, Used: 8},
	layer:    slices.Concat([]part{attnNorm, ffnNorm}, olmoLayer[:5], []part{attnOutput}, expertParts),
	biases:   map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	square:   true, experts: "num_experts", softmaxAll: true,

	readFields: func(h *hfConfig, _ *Config) error {
		if h.NormTopK {
			return errors.New("norm_topk_prob is true, which GGUF files of olmoe cannot express: want false")
		}
		return nil
	},
	writeFields: func(_ *Config, m map[string]any) error {
		m["norm_topk_prob"] = false
		return nil
	},
	check: olmoCheck,
}
