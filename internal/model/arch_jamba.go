package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/nn"
)

// jamba is Jamba without experts, such as Jamba Reasoning 3B: layers of Mamba, and a few with attention, which do not
// rotate positions in.
var jamba = architecture{
	name: "jamba", modelType: "jamba", class: "JambaForCausalLM",
	keys: rmsAnd(expertKeys + " ssm.conv_kernel ssm.state_size ssm.time_step_rank ssm.inner_size"),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 8, Experts: 16, Used: 2, ExpertPeriod: 2,
		ExpertOffset: 1, AttentionPeriod: 8, AttentionOffset: 4, MambaStateDim: 16, MambaKernel: 4, MambaExpand: 2,
		MambaConvBias: true, IntermediateSize: 14336, MaxPositions: 262144},
	top: []part{llamaTop[0], {name: "output_norm", folder: "model.final_layernorm", out: hidden}, llamaTop[2]},
	layer: slices.Concat(jambaLayer, []part{
		{name: "ffn_gate", folder: "feed_forward.gate_proj", out: inner, in: hidden},
		{name: "ffn_up", folder: "feed_forward.up_proj", out: inner, in: hidden},
		{name: "ffn_down", folder: "feed_forward.down_proj", out: hidden, in: inner},
	}),
	biases: map[string]string{"mamba_conv_bias": "ssm_conv1d", "": "ssm_dt"},
	square: true, hybrid: true, heads: true, ownRope: true,
	of: func(h *hfConfig) bool { return h.Experts == 1 || h.LocalExperts == 1 },

	recurrent: (*builder).mamba1,
	readKeys: func(k *keys, c *Config) {
		c.Mamba = MambaConfig{Heads: 1, Groups: 1, HeadDim: k.int("ssm.inner_size"), StateDim: k.int("ssm.state_size"),
			Rank: k.int("ssm.time_step_rank")}
		c.Kernel = k.int("ssm.conv_kernel")
		c.setStill()
		if c.Mamba.Rank < 1 {
			k.refuse("ssm.time_step_rank", fmt.Sprintf("is %d", c.Mamba.Rank))
		}
		switch {
		case c.Experts == 1: // an MLP
			c.Experts, c.Used = 0, 0
		case c.Experts > 0:
			c.countEvery(k)
		case c.Used > 0:
			k.refuse("expert_used_count", fmt.Sprintf("is %d, but there are no experts", c.Used))
		}
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("ssm.conv_kernel", uint32(c.Kernel))
		set("ssm.state_size", uint32(c.Mamba.StateDim))
		set("ssm.time_step_rank", uint32(c.Mamba.Rank))
		set("ssm.inner_size", uint32(c.Mamba.inner()))
	},
	readFields: readJambaFields, writeFields: writeJambaFields,
	check: func(c *Config) error {
		switch {
		case !c.Hybrid() || !c.attendsSomewhere():
			return errors.New("all layers are of one kind: a jamba model has some with attention and some without")
		case c.Mamba.inner() != 2*c.Hidden:
			return errors.New("the layers of Mamba are not twice as wide as the hidden size: llama.cpp requires that of a jamba model")
		}
		return nil
	},
}

// jambaMoE is Jamba with experts in every other layer: Jamba Mini and Large.
var jambaMoE = func() architecture {
	a := jamba
	a.experts, a.fields = "num_experts", "num_local_experts"
	a.softmaxAll = true
	dense := func(c *Config, layer int) bool { return !c.hasExperts(layer) }
	a.layer = slices.Concat(jambaLayer, only(dense, jamba.layer[len(jambaLayer):]...), only((*Config).hasExperts,
		part{name: "ffn_gate_inp", folder: "feed_forward.router", out: experts, in: hidden},
		part{name: "ffn_gate_exps", folder: "feed_forward.experts.*.gate_proj", out: inner, in: hidden, each: true},
		part{name: "ffn_up_exps", folder: "feed_forward.experts.*.up_proj", out: inner, in: hidden, each: true},
		part{name: "ffn_down_exps", folder: "feed_forward.experts.*.down_proj", out: hidden, in: inner, each: true}))
	a.of = nil
	return a
}()

// jambaLayer is the parts of a layer except its MLP.
var jambaLayer = slices.Concat([]part{attnNorm}, only((*Config).recurrent,
	part{name: "ssm_in", folder: "mamba.in_proj", out: mambaBoth, in: hidden},
	part{name: "ssm_conv1d", folder: "mamba.conv1d", out: mambaInner, in: kernel, conv: true},
	part{name: "ssm_x", folder: "mamba.x_proj", out: mambaSteps, in: mambaInner},
	part{name: "ssm_dt_norm", folder: "mamba.dt_layernorm", out: mambaRank},
	part{name: "ssm_dt", folder: "mamba.dt_proj", out: mambaInner, in: mambaRank},
	part{name: "ssm_b_norm", folder: "mamba.b_layernorm", out: mambaState},
	part{name: "ssm_c_norm", folder: "mamba.c_layernorm", out: mambaState},
	part{name: "ssm_a", whole: true, folder: "mamba.A_log", out: mambaInner, in: mambaState, bare: true, decay: true},
	part{name: "ssm_d", whole: true, folder: "mamba.D", out: mambaInner, bare: true},
	part{name: "ssm_out", folder: "mamba.out_proj", out: hidden, in: mambaInner}),
	only((*Config).attends, query, key, value, attnOutput),
	[]part{{name: "ffn_norm", folder: "pre_ff_layernorm", out: hidden}})

// countEvery finds by their tensors which layers have experts.
func (c *Config) countEvery(k *keys) {
	has := func(i int) bool { return k.HasTensor(fmt.Sprintf("blk.%d%s", i, RouterName)) }
	for c.Every = 1; c.Every < c.Layers && !has(c.Every-1); c.Every++ {
	}
	for i := range min(c.Layers, maxLayers) {
		if has(i) != c.hasExperts(i) {
			k.refuse("expert_count", fmt.Sprintf("is %d, but layers with experts are not every n-th", c.Experts))
			return
		}
	}
}

// mamba1 builds a layer of Mamba.
func (b *builder) mamba1(name func(part string) string) (nn.Recurrent, nn.Linear) {
	c, m := b.c, b.c.Mamba
	if err := m.validate(); err != nil { // Config.Validate takes one of zeros for none
		b.keep(err)
		return &nn.Mamba1{}, nn.Linear{}
	}
	width, steps := m.inner(), m.Rank+2*m.StateDim
	layer := &nn.Mamba1{
		In: b.linear(name("ssm_in"), 2*width, c.Hidden), X: b.linear(name("ssm_x"), steps, width),
		Step: b.linear(name("ssm_dt"), width, m.Rank), Conv: b.convolution(name("ssm_conv1d"), width),
		A: make([]float32, m.StateDim*width), Skip: b.vector(name("ssm_d"), width), States: m.StateDim,
		StepNorm: b.norm(name("ssm_dt_norm"), m.Rank), BNorm: b.norm(name("ssm_b_norm"), m.StateDim),
		CNorm: b.norm(name("ssm_c_norm"), m.StateDim),
	}
	layer.Conv.Bias = b.bias(name("ssm_conv1d"), width)
	for i, decays := range b.vectors(name("ssm_a"), width, m.StateDim) {
		for n, a := range decays {
			layer.A[n*width+i] = a
		}
	}
	return layer, b.linear(name("ssm_out"), c.Hidden, width)
}

func readJambaFields(h *hfConfig, c *Config) error {
	c.Kernel = h.MambaKernel
	c.Mamba = MambaConfig{Heads: 1, Groups: 1, HeadDim: h.MambaExpand * c.Hidden, StateDim: h.MambaStateDim,
		Rank: (c.Hidden + 15) / 16}
	switch v := h.MambaRank.(type) {
	case float64:
		c.Mamba.Rank = int(v)
	case nil:
	default:
		if v != "auto" {
			return fmt.Errorf("mamba_dt_rank is %v: want a number, or auto", v)
		}
	}
	c.setStill()
	if c.Mamba.Rank < 1 {
		return fmt.Errorf("mamba_dt_rank is %d: want 1 or more", c.Mamba.Rank)
	}
	if h.AttentionPeriod < 1 || h.AttentionOffset < 0 || h.AttentionOffset >= h.AttentionPeriod {
		return fmt.Errorf("attn_layer_period is %d and attn_layer_offset %d: want a smaller offset",
			h.AttentionPeriod, h.AttentionOffset)
	}
	for i := range min(c.Layers, maxLayers) {
		c.Recurrent = append(c.Recurrent, i%h.AttentionPeriod != h.AttentionOffset)
	}
	if c.Experts == 0 {
		return nil
	}
	c.Every = h.ExpertPeriod
	if h.ExpertOffset != h.ExpertPeriod-1 {
		return fmt.Errorf("expert_layer_offset is %d and expert_layer_period %d: want one less",
			h.ExpertOffset, h.ExpertPeriod)
	}
	return nil
}

func writeJambaFields(c *Config, m map[string]any) error {
	for _, field := range []string{"layer_types", "rope_theta"} {
		delete(m, field)
	}
	m["mamba_d_conv"], m["mamba_d_state"] = c.Kernel, c.Mamba.StateDim
	m["mamba_dt_rank"], m["mamba_expand"] = c.Mamba.Rank, c.Mamba.inner()/c.Hidden
	m["mamba_conv_bias"], m["mamba_proj_bias"] = true, false
	m["expert_layer_period"], m["expert_layer_offset"] = 2, 1
	if c.Experts == 0 {
		m["num_experts"], m["num_experts_per_tok"] = 1, 1
	} else {
		m["expert_layer_period"], m["expert_layer_offset"] = c.Every, c.Every-1
	}
	first := slices.Index(c.Recurrent, false)
	period := c.Layers
	if next := slices.Index(c.Recurrent[first+1:], false); next >= 0 {
		period = next + 1
	}
	m["attn_layer_period"], m["attn_layer_offset"] = period, first
	for i, recurrent := range c.Recurrent {
		if recurrent == (i%period == first) {
			return errors.New("key attention.head_count_kv: config.json of jamba has attention in every n-th layer, and in no others")
		}
	}
	return nil
}
