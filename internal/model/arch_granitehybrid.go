package model

import (
	"errors"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// graniteHybrid is Granite 4 with Mamba-2 layers and without experts.
var graniteHybrid = architecture{
	name: "granitehybrid", modelType: "granitemoehybrid", class: "GraniteMoeHybridForCausalLM",
	keys: func() ggufkeys.Rules {
		r := graniteKeys
		r.Obeyed = slices.Concat(r.Obeyed, strings.Fields(mambaKeys+" "+sharedWidth))
		return r
	}(),
	fields: granite.fields,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, SharedFFN: 1024,
		AttnMultiplier: 1, EmbedMultiplier: 1, ResidualMultiplier: 1, LogitsScaling: 1,
		MambaHeads: 128, MambaGroups: 1, MambaStateDim: 256, MambaHeadDim: "auto", MambaKernel: 4, MambaExpand: 2,
		MambaConvBias: true},
	layer: slices.Concat(graniteHybridLayer, []part{
		{name: "ffn_gate", folder: "shared_mlp.input_linear", out: inner, in: hidden, half: 1},
		{name: "ffn_up", folder: "shared_mlp.input_linear", out: inner, in: hidden, half: 2},
		{name: "ffn_down", folder: "shared_mlp.output_linear", out: hidden, in: inner},
	}),
	biases:     map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output", "mamba_conv_bias": "ssm_conv1d"},
	neighbours: true, square: true, hybrid: true, kind: "mamba", attention: "attention", heads: true,
	of: func(h *hfConfig) bool { return hasRecurrent(h) && h.LocalExperts == 0 },

	recurrent: (*builder).mamba,
	readKeys: func(k *keys, c *Config) {
		readGraniteKeys(k, c)
		readMambaKeys(k, c)
		wantSharedWidth(k, c)
	},
	writeKeys: func(c *Config, set func(string, any)) {
		granite.writeKeys(c, set)
		writeMambaKeys(c, set)
	},
	readFields: func(h *hfConfig, c *Config) error {
		c.FFN = h.SharedFFN
		return readHybridFields(h, c)
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["num_local_experts"], m["num_experts_per_tok"] = 0, 0
		m["shared_intermediate_size"] = c.FFN
		return writeHybridFields(c, m)
	},
	check: checkGraniteHybrid,
}

// graniteHybridMoE is Granite 4 with Mamba-2 layers, and with experts in addition to an MLP that all rows use.
var graniteHybridMoE = func() architecture {
	a := graniteHybrid
	a.keys.Obeyed = slices.Concat(a.keys.Obeyed, strings.Fields(expertKeys))
	a.defaults.LocalExperts = 8
	a.defaults.Used = 2
	a.layer = slices.Concat(graniteHybridLayer, []part{
		{name: "ffn_gate_inp", folder: "block_sparse_moe.router.layer", out: experts, in: hidden},
		{name: "ffn_gate_exps", folder: "block_sparse_moe.input_linear", out: inner, in: hidden, half: 1, each: true},
		{name: "ffn_up_exps", folder: "block_sparse_moe.input_linear", out: inner, in: hidden, half: 2, each: true},
		{name: "ffn_down_exps", folder: "block_sparse_moe.output_linear", out: hidden, in: inner, each: true},
		{name: "ffn_gate_shexp", folder: "shared_mlp.input_linear", out: sharedInner, in: hidden, half: 1},
		{name: "ffn_up_shexp", folder: "shared_mlp.input_linear", out: sharedInner, in: hidden, half: 2},
		{name: "ffn_down_shexp", folder: "shared_mlp.output_linear", out: hidden, in: sharedInner},
	})
	a.experts = "num_local_experts"
	a.of = hasRecurrent
	a.readKeys = func(k *keys, c *Config) {
		readGraniteKeys(k, c)
		readMambaKeys(k, c)
		c.SharedFFN = k.int("expert_shared_feed_forward_length")
	}
	a.writeKeys = func(c *Config, set func(string, any)) {
		graniteHybrid.writeKeys(c, set)
		set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
	}
	a.readFields = func(h *hfConfig, c *Config) error {
		c.SharedFFN = h.SharedFFN
		return readHybridFields(h, c)
	}
	a.writeFields = func(c *Config, m map[string]any) error {
		m["shared_intermediate_size"] = c.SharedFFN
		return writeHybridFields(c, m)
	}
	return a
}()

// graniteHybridLayer is the parts of a layer except its MLPs.
var graniteHybridLayer = slices.Concat([]part{attnNorm, ffnNorm}, mambaParts("mamba.", (*Config).recurrent),
	only((*Config).attends, query, key, value, attnOutput))

// hasRecurrent reports whether a folder lists a Mamba-2 layer.
func hasRecurrent(h *hfConfig) bool {
	return slices.ContainsFunc(h.LayerTypes, func(t string) bool { return t == "mamba" || t == "linear_attention" })
}

func readHybridFields(h *hfConfig, c *Config) error {
	c.Kernel = h.MambaKernel
	c.Mamba = MambaConfig{Heads: h.MambaHeads, Groups: h.MambaGroups, StateDim: h.MambaStateDim}
	c.Mamba.HeadDim = h.mambaHeadDim(h.MambaExpand * h.HiddenSize)
	return errors.Join(h.checkTimeSteps(), readPositionType(h, c), readMultipliers(h, c))
}

func writeHybridFields(c *Config, m map[string]any) error {
	m["mamba_d_conv"], m["mamba_n_heads"] = c.Kernel, c.Mamba.Heads
	m["mamba_d_head"], m["mamba_n_groups"] = c.Mamba.HeadDim, c.Mamba.Groups
	m["mamba_d_state"], m["mamba_expand"] = c.Mamba.StateDim, 2
	m["mamba_conv_bias"] = true
	m["position_embedding_type"] = "nope"
	if c.NoRope == nil {
		m["position_embedding_type"] = "rope"
	}
	c.writeMultipliers(m)
	return nil
}

func checkGraniteHybrid(c *Config) error {
	switch {
	case !c.Hybrid() || !c.attendsSomewhere():
		return errors.New("all layers are of one kind: a granitehybrid model has some with attention and some without")
	case c.Mamba.inner() != 2*c.Hidden:
		return errors.New("the Mamba-2 heads together are not twice the hidden size: llama.cpp requires that of a granitehybrid model")
	}
	return nil
}
