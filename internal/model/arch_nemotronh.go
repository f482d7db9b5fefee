package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/nn"
)

// nemotronH is Nemotron-H and Nemotron Nano 2: each layer is Mamba-2, attention without rotation, or an MLP.
var nemotronH = architecture{
	name: "nemotron_h", modelType: "nemotron_h", class: "NemotronHForCausalLM",
	keys: rmsAnd(mambaKeys),
	defaults: hfConfig{HiddenAct: "relu2", NormEpsilon: 1e-5, KVHeads: 8, HeadDim: 128,
		IntermediateSize: 21504, MaxPositions: 4096,
		StateSize: 128, StateHeads: 128, StateHeadDim: 64, StateGroups: 8, ConvKernel: 4, UseConvBias: true},
	prefix: "backbone.layers.",
	top: []part{
		{name: "token_embd", folder: "backbone.embeddings", out: vocab, in: hidden},
		{name: "output_norm", folder: "backbone.norm_f", out: hidden},
		llamaTop[2],
	},
	layer: slices.Concat(nemotronLayer, only((*Config).bare,
		part{name: "ffn_up", folder: "mixer.up_proj", out: inner, in: hidden},
		part{name: "ffn_down", folder: "mixer.down_proj", out: hidden, in: inner})),
	biases: map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output", "mlp_bias": "ffn_up ffn_down",
		"use_conv_bias": "ssm_conv1d"},
	neighbours: true, eitherNorm: true, hybrid: true, heads: true, varied: true, ownRope: true, act: nn.SquaredReLU,
	of: func(h *hfConfig) bool { return !h.hasExperts() },

	recurrent:   (*builder).mamba,
	readKeys:    readNemotronKeys,
	writeKeys:   writeNemotronKeys,
	readFields:  readNemotronFields,
	writeFields: writeNemotronFields,
	check:       checkNemotron,
}

// nemotronHMoE is Nemotron 3: Nemotron-H with experts instead of MLPs.
var nemotronHMoE = func() architecture {
	a := nemotronH
	a.name = "nemotron_h_moe"
	a.ahead = onlyAhead(nemotronAhead)
	a.aheadTwo, a.uncounted = true, true
	a.keys = rmsAnd(mambaKeys + " " + expertKeys + ` expert_feed_forward_length expert_shared_feed_forward_length expert_gating_func
		expert_weights_norm expert_weights_scale expert_group_count expert_group_used_count moe_latent_size`)
	a.keys.Ignored = append(slices.Clone(a.keys.Ignored), "expert_shared_count") // they form one MLP of the given width
	a.defaults.RoutedExperts, a.defaults.Used = 8, 2
	a.defaults.ExpertFFN, a.defaults.SharedExpert = 7688, 7688
	a.defaults.RoutedScale, a.defaults.NormTopK = 1, true
	a.defaults.Groups, a.defaults.TopGroups = 1, 1
	narrowed := func(c *Config, layer int) bool { return c.bare(layer) && c.Narrow > 0 }
	a.layer = slices.Concat(nemotronLayer, only((*Config).bare,
		part{name: "ffn_gate_inp", folder: "mixer.gate", out: experts, in: hidden},
		part{name: "exp_probs_b", ending: ".bias", folder: "mixer.gate.e_score_correction_bias", bare: true, out: experts}),
		only(narrowed,
			part{name: "ffn_latent_down", folder: "mixer.fc1_latent_proj", out: latent, in: hidden},
			part{name: "ffn_latent_up", folder: "mixer.fc2_latent_proj", out: hidden, in: latent}),
		only((*Config).bare,
			part{name: "ffn_up_exps", folder: "mixer.experts.*.up_proj", out: expertInner, in: latent, each: true},
			part{name: "ffn_down_exps", folder: "mixer.experts.*.down_proj", out: latent, in: expertInner, each: true},
			part{name: "ffn_up_shexp", folder: "mixer.shared_experts.up_proj", out: sharedInner, in: hidden},
			part{name: "ffn_down_shexp", folder: "mixer.shared_experts.down_proj", out: hidden, in: sharedInner}))
	a.biases = map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output", "use_conv_bias": "ssm_conv1d"}
	a.experts = "n_routed_experts"
	a.of = (*hfConfig).hasExperts
	return a
}()

// nemotronLayer is the parts of a layer, except MLPs and experts.
var nemotronLayer = slices.Concat([]part{{name: "attn_norm", folder: "norm", out: hidden}},
	mambaParts("mixer.", (*Config).recurrent),
	only((*Config).attends,
		part{name: "attn_q", folder: "mixer.q_proj", out: queries, in: hidden, heads: true},
		part{name: "attn_k", folder: "mixer.k_proj", out: keyHeads, in: hidden, heads: true},
		part{name: "attn_v", folder: "mixer.v_proj", out: keyHeads, in: hidden},
		part{name: "attn_output", folder: "mixer.o_proj", out: hidden, in: queries}))

// blockTypes are the kinds of layers, by their letters and by the names in the two lists that folders may have.
var blockTypes = map[string]string{"M": "mamba", "*": "attention", "-": "mlp", "E": "moe", "linear_attention": "mamba",
	"full_attention": "attention"}

// blocks returns the kinds of layers that a folder lists.
func (h *hfConfig) blocks() []string {
	list := h.BlockTypes
	if h.Pattern != "" {
		list = strings.Split(h.Pattern, "")
	}
	list = slices.Clone(list)
	for i, name := range list {
		if kind, ok := blockTypes[name]; ok {
			list[i] = kind
		}
	}
	return list
}

func (h *hfConfig) hasExperts() bool { return slices.Contains(h.blocks(), "moe") }

// setStill turns rotation off in all layers of c.
func (c *Config) setStill() {
	c.Rope = RopeConfig{Base: 10000, Dims: c.HeadDim, Scale: 1, Neighbours: true}
	c.NoRope = everyNth(c.Layers, 1)
}

func readNemotronKeys(k *keys, c *Config) {
	readMambaKeys(k, c)
	c.setStill()
	c.Bare = make([]bool, max(c.Layers, 0))
	c.FFN = 0
	for i, n := range k.each("feed_forward_length", c.Layers) {
		c.Bare[i] = n > 0
		switch {
		case n == 0 || n == c.FFN:
		case c.FFN > 0:
			k.refuse("feed_forward_length", "has two widths")
		default:
			c.FFN = n
		}
		if c.Bare[i] && i < len(c.Recurrent) {
			if !c.Recurrent[i] {
				k.refuse("feed_forward_length", fmt.Sprintf("gives layer %d an MLP, but key %q gives it key/value heads", i,
					k.name("attention.head_count_kv")))
			}
			c.Recurrent[i] = false
		}
	}
	if c.Experts == 0 {
		return
	}
	c.ExpertFFN = k.int("expert_feed_forward_length", c.FFN/max(c.Used, 1))
	c.SharedFFN = k.int("expert_shared_feed_forward_length")
	c.Narrow = k.int("moe_latent_size", 0)
	c.Rule.Sigmoid = true
	c.Rule.Norm = k.bool("expert_weights_norm", false)
	c.Rule.Scale = unless1(k.float("expert_weights_scale", 0))
	c.Rule.Groups, c.Rule.Chosen = k.int("expert_group_count", 0), k.int("expert_group_used_count", 0)
	if c.Rule.Groups == 1 {
		c.Rule.Chosen = 1
	}
	c.checkGroups(k)
	k.wantSigmoid()
}

func writeNemotronKeys(c *Config, set func(string, any)) {
	writeMambaKeys(c, set)
	set("rope.scaling.finetuned", false)
	list := make([]uint32, c.Layers)
	for i := range list {
		if c.bare(i) {
			list[i] = uint32(c.FFN)
		}
	}
	set("feed_forward_length", list)
	if c.Experts == 0 {
		return
	}
	set("expert_feed_forward_length", uint32(c.ExpertFFN))
	set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
	set("expert_shared_count", uint32(1))
	set("expert_gating_func", uint32(bySigma))
	set("expert_weights_norm", c.Rule.Norm)
	set("expert_weights_scale", cmp.Or(c.Rule.Scale, 1))
	set("expert_group_count", uint32(max(c.Rule.Groups, 1)))
	set("expert_group_used_count", uint32(max(c.Rule.Chosen, 1)))
	if c.Narrow > 0 {
		set("moe_latent_size", uint32(c.Narrow))
	}
}

func readNemotronFields(h *hfConfig, c *Config) error {
	c.setStill()
	c.NormEps = float32(h.NormEpsilon)
	c.Kernel = cmp.Or(h.MambaKernel, h.ConvKernel) // the older name takes precedence, as in transformers
	c.Mamba = MambaConfig{Heads: h.StateHeads, Groups: cmp.Or(h.MambaGroups, h.StateGroups), HeadDim: h.StateHeadDim,
		StateDim: h.StateSize}
	c.Bare, c.Recurrent = make([]bool, c.Layers), make([]bool, c.Layers)
	mlp := "mlp"
	if c.Experts > 0 {
		mlp = "moe"
		c.FFN, c.ExpertFFN = int(h.ExpertFFN), int(h.ExpertFFN)
		c.SharedFFN = h.SharedExpert
		c.Narrow = h.Latent
		c.Rule.Sigmoid = true
		c.Rule.Norm, c.Rule.Scale = h.NormTopK, unless1(h.RoutedScale)
		c.Rule.Groups, c.Rule.Chosen = h.Groups, h.TopGroups
	}
	kinds := h.blocks()
	if len(kinds) != c.Layers {
		return fmt.Errorf("hybrid_override_pattern or layers_block_type lists %d layers: want %d", len(kinds), c.Layers)
	}
	for i, kind := range kinds {
		c.Bare[i], c.Recurrent[i] = kind == mlp, kind == "mamba"
		if kind != mlp && kind != "mamba" && kind != "attention" {
			return fmt.Errorf("hybrid_override_pattern or layers_block_type has %q: want layers of mamba, attention and %s", kind, mlp)
		}
	}
	return h.checkTimeSteps()
}

func writeNemotronFields(c *Config, m map[string]any) error {
	pattern := ""
	for i := range c.Layers {
		switch {
		case c.recurrent(i):
			pattern += "M"
		case c.attends(i):
			pattern += "*"
		case c.Experts > 0:
			pattern += "E"
		default:
			pattern += "-"
		}
	}
	m["hybrid_override_pattern"] = pattern
	for _, name := range []string{"layer_types", "rope_theta", "rms_norm_eps", "hidden_act"} {
		delete(m, name)
	}
	m["layer_norm_epsilon"] = decimal(float64(c.NormEps))
	m["mlp_hidden_act"], m["mamba_hidden_act"] = "relu2", "silu"
	m["conv_kernel"], m["ssm_state_size"] = c.Kernel, c.Mamba.StateDim
	m["mamba_num_heads"], m["mamba_head_dim"] = c.Mamba.Heads, c.Mamba.HeadDim
	m["n_groups"], m["use_conv_bias"] = c.Mamba.Groups, true
	if c.Experts == 0 {
		return nil
	}
	m["moe_intermediate_size"], m["moe_shared_expert_intermediate_size"] = c.ExpertFFN, c.SharedFFN
	m["n_shared_experts"], m["norm_topk_prob"] = 1, c.Rule.Norm
	m["n_group"], m["topk_group"] = max(c.Rule.Groups, 1), max(c.Rule.Chosen, 1)
	m["routed_scaling_factor"] = floating(decimal(float64(cmp.Or(c.Rule.Scale, 1))))
	if c.Narrow > 0 {
		m["moe_latent_size"] = c.Narrow
	}
	return nil
}

func checkNemotron(c *Config) error {
	if !c.Hybrid() || !c.attendsSomewhere() || !slices.Contains(c.Bare, true) {
		return errors.New("a kind of layer is missing: a Nemotron-H model has Mamba-2, attention and MLPs or experts")
	}
	return nil
}
