package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// qwen35moe is Qwen 3.5 and 3.6 with experts in all layers, alongside a shared one that all rows use.
var qwen35moe = func() architecture {
	a := qwen35
	a.name = "qwen35moe"
	a.modelType, a.class = "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"
	a.defaults.KVHeads = 2
	a.defaults.Experts, a.defaults.Used = 256, 8
	a.defaults.ExpertFFN, a.defaults.SharedExpertFFN = 512, 512
	return withSharedExpert(a, expertGate.together("mlp.experts.gate_up_proj", 1),
		expertUp.together("mlp.experts.gate_up_proj", 2),
		expertDown.together("mlp.experts.down_proj", 0))
}()

// together is the part where folders have all experts in a tensor, or in half of each matrix of it.
func (p part) together(folder string, half int) part {
	p.apart = p.folder
	p.folder = folder
	p.half = half
	p.bare = true
	return p
}

// qwen35moeText is a folder with towers alongside the text model.
var qwen35moeText = nestedText(qwen35moe, "qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration")

// qwen3next is Qwen 3 Next, the predecessor of Qwen 3.5: some products are fused, and neighbouring
// value heads share a key head in GGUF files too.
var qwen3next = func() architecture {
	a := qwen35
	a.name = "qwen3next"
	a.modelType, a.class = "qwen3_next", "Qwen3NextForCausalLM"
	a.fields = ""
	a.defaults.KVHeads = 2
	a.defaults.Experts, a.defaults.Used = 512, 10
	a.defaults.ExpertFFN, a.defaults.SharedExpertFFN = 512, 512
	a.layer = slices.Clone(a.layer)
	for i := range a.layer {
		p := &a.layer[i]
		p.tiled = false
		switch p.name {
		case "attn_qkv":
			p.folder, p.mixed = "linear_attn.in_proj_qkvz", 1
		case "attn_gate":
			p.folder, p.mixed = "linear_attn.in_proj_qkvz", 2
		case "ssm_beta":
			p.name = "ssm_ba"
			p.folder = "linear_attn.in_proj_ba"
			p.out = deltaGates
		}
	}
	a.layer = slices.DeleteFunc(a.layer, func(p part) bool { return p.name == "ssm_alpha" })
	a.implied = func(c *Config) { c.Delta.Grouped = true }
	a = withSharedExpert(a, expertGate, expertUp, expertDown)
	read := a.readFields
	a.readFields = func(h *hfConfig, c *Config) error {
		err := read(h, c)
		a.implied(c)
		return err
	}
	return a
}()

// qwen2moe is Qwen 1.5 and 2 with experts, whose weights do not add up to 1.
var qwen2moe = func() architecture {
	a := qwen2
	a.name, a.images = "qwen2moe", ""
	a.modelType, a.class = "qwen2_moe", "Qwen2MoeForCausalLM"
	a.defaults.KVHeads = 16
	a.defaults.Experts, a.defaults.Used = 60, 4
	a.defaults.ExpertFFN, a.defaults.SharedExpertFFN = 1408, 5632
	a.softmaxAll = true
	a = withSharedExpert(a, expertGate, expertUp, expertDown)
	a.readKeys = func(k *keys, c *Config) {
		width := c.FFN // which the other two keys default to, in llama.cpp
		c.FFN = k.int("expert_feed_forward_length", width/max(c.Used, 1))
		c.SharedFFN = k.int("expert_shared_feed_forward_length", width)
	}
	return a
}()

// withSharedExpert replaces the MLP of a Qwen by experts, alongside a shared one that all rows use,
// whose results are multiplied by σ of a gate.
func withSharedExpert(a architecture, parts ...part) architecture {
	a.keys.Obeyed = slices.Concat(a.keys.Obeyed, strings.Fields(expertKeys+
		" expert_feed_forward_length expert_shared_feed_forward_length"))
	a.keys.Neutral = map[string][]any{"expert_weights_norm": {!a.softmaxAll, false}, "expert_gating_func": {0, 1},
		"expert_shared_count": {0, 1}}
	a.experts = "num_experts"
	a.defaults.IntermediateSize = 5632
	a.defaults.SparseStep = 1
	a.defaults.NormTopK = !a.softmaxAll
	a.layer = slices.Concat(a.layer[:len(a.layer)-3], []part{router}, parts, []part{
		{name: "ffn_gate_inp_shexp", folder: "mlp.shared_expert_gate", out: one, in: hidden},
		{name: "ffn_gate_shexp", folder: "mlp.shared_expert.gate_proj", out: sharedInner, in: hidden},
		{name: "ffn_up_shexp", folder: "mlp.shared_expert.up_proj", out: sharedInner, in: hidden},
		{name: "ffn_down_shexp", folder: "mlp.shared_expert.down_proj", out: hidden, in: sharedInner},
	})
	recurrent := a.hybrid
	a.readKeys = func(k *keys, c *Config) {
		readDeltaKeys(k, c)
		c.FFN = k.int("expert_feed_forward_length")
		c.SharedFFN = k.int("expert_shared_feed_forward_length", c.FFN)
	}
	a.writeKeys = func(c *Config, set func(string, any)) {
		if recurrent {
			writeDeltaKeys(c, set)
		}
		set("expert_feed_forward_length", uint32(c.FFN))
		set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
	}
	a.readFields = func(h *hfConfig, c *Config) error {
		c.FFN, c.SharedFFN = int(h.ExpertFFN), h.SharedExpertFFN
		switch {
		case h.SparseStep != 1:
			return fmt.Errorf("decoder_sparse_step is %d: want 1, experts in all layers", h.SparseStep)
		case len(h.DenseLayers) > 0:
			return fmt.Errorf("mlp_only_layers is %v: want none, experts in all layers", h.DenseLayers)
		case h.NormTopK != recurrent:
			return fmt.Errorf("norm_topk_prob is %t: want %t, as GGUF files of %s cannot say otherwise", h.NormTopK, recurrent, c.Arch)
		case h.QKVBiasToo != nil && !*h.QKVBiasToo:
			return errors.New("qkv_bias is false: want true")
		case h.SharedExpertFFN < 1:
			return fmt.Errorf("shared_expert_intermediate_size is %d: want an expert that all rows use", h.SharedExpertFFN)
		}
		if !recurrent {
			return nil
		}
		return readDeltaFields(h, c)
	}
	a.writeFields = func(c *Config, m map[string]any) error {
		m["moe_intermediate_size"], m["shared_expert_intermediate_size"] = c.FFN, c.SharedFFN
		if !recurrent {
			return nil
		}
		return writeDeltaFields(c, m)
	}
	return a
}
