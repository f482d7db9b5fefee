package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/nn"
)

// qwen35 is the dense Qwen 3.5 and 3.6: three of four layers are gated DeltaNet, the others have
// attention with gates. In texts, positions are the same in all three dimensions.
var qwen35 = architecture{
	name: "qwen35", modelType: "qwen3_5_text", class: "Qwen3_5ForCausalLM",
	keys:   qwen35Keys,
	fields: "mrope_section",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 4, HeadDim: 256, OutputGate: true,
		LinearKernel: 4, LinearKeyHeads: 16, LinearValueHeads: 32, LinearKeyDim: 128, LinearValueDim: 128,
		AttentionInterval: 4},
	layer:   slices.Concat(deltaNorms, deltaParts, gatedParts, []part{ffnGate, ffnUp, ffnDown}),
	shifted: true, rotated: 0.25, hybrid: true, kind: "linear_attention", gated: true,
	ahead: onlyAhead(QwenAhead), uncounted: true,

	recurrent:   (*builder).deltaNet,
	readKeys:    readDeltaKeys,
	writeKeys:   writeDeltaKeys,
	readFields:  readDeltaFields,
	writeFields: writeDeltaFields,
}

// deltaNorms are the norms of both halves of a layer.
var deltaNorms = []part{attnNorm, {name: "post_attention_norm", folder: "post_attention_layernorm",
	as: "ffn_norm", out: hidden}}

// deltaParts are the parts of layers of gated DeltaNet, gatedParts those of the attention in the others.
var (
	deltaParts = only((*Config).recurrent,
		part{name: "attn_qkv", folder: "linear_attn.in_proj_qkv", out: deltaChannels, in: hidden, tiled: true},
		part{name: "attn_gate", folder: "linear_attn.in_proj_z", out: deltaValues, in: hidden, tiled: true},
		part{name: "ssm_conv1d", folder: "linear_attn.conv1d", out: deltaChannels, in: kernel, conv: true, tiled: true},
		part{name: "ssm_dt", ending: ".bias", folder: "linear_attn.dt_bias", out: deltaHeads, bare: true, param: true,
			plain: true, tiled: true},
		part{name: "ssm_a", whole: true, folder: "linear_attn.A_log", out: deltaHeads, bare: true, param: true, plain: true,
			decay: true, tiled: true},
		part{name: "ssm_beta", folder: "linear_attn.in_proj_b", out: deltaHeads, in: hidden, tiled: true},
		part{name: "ssm_alpha", folder: "linear_attn.in_proj_a", out: deltaHeads, in: hidden, tiled: true},
		part{name: "ssm_norm", folder: "linear_attn.norm", out: deltaHead, plain: true},
		part{name: "ssm_out", folder: "linear_attn.out_proj", out: hidden, in: deltaValues, tiled: true})
	gatedParts = only((*Config).attends,
		part{name: "attn_q", folder: "self_attn.q_proj", out: queriesGates, in: hidden},
		part{name: "attn_k", folder: "self_attn.k_proj", out: keyHeads, in: hidden},
		part{name: "attn_v", folder: "self_attn.v_proj", out: keyHeads, in: hidden},
		attnOutput, queryNorm, keyNorm)
)

// qwen35text is a folder with vision towers alongside the text model, whose fields are in text_config.
var qwen35text = nestedText(qwen35, "qwen3_5", "Qwen3_5ForConditionalGeneration")

// nestedText is an architecture whose folders have towers alongside the text model, with its fields in text_config.
func nestedText(a architecture, modelType, class string) architecture {
	a.modelType, a.class = modelType, class
	a.prefix = "model.language_model.layers."
	a.top = slices.Clone(llamaTop)
	a.top[0].folder, a.top[1].folder = "model.language_model.embed_tokens", "model.language_model.norm"
	a.nested = "text_config"
	read := a.readFields
	a.readFields = func(h *hfConfig, c *Config) error {
		c.Folder = h.ModelType
		return read(h, c)
	}
	return a
}

const deltaKeys = `ssm.conv_kernel ssm.state_size ssm.group_count ssm.time_step_rank ssm.inner_size
	full_attention_interval attention.recurrent_layers`

// qwen35Keys allow any sections of the rotation: in texts, all sections have the same position.
var qwen35Keys = func() ggufkeys.Rules {
	r := rmsAnd(deltaKeys)
	r.Ignored = append(slices.Clone(r.Ignored), "rope.dimension_sections")
	return r
}()

func readDeltaKeys(k *keys, c *Config) {
	d := &c.Delta
	c.Kernel = k.int("ssm.conv_kernel")
	d.KeyHeads, d.ValueHeads = k.int("ssm.group_count"), k.int("ssm.time_step_rank")
	d.KeyDim = k.int("ssm.state_size")
	if d.ValueHeads > 0 {
		d.ValueDim = k.int("ssm.inner_size") / d.ValueHeads
	}
	const key = "attention.recurrent_layers"
	if list, ok := k.Bools(k.name(key)); ok {
		if len(list) != c.Layers && len(list) != c.Layers+c.Ahead {
			k.refuse(key, fmt.Sprintf("lists %d layers, but there are %d", len(list), c.Layers))
			return
		}
		c.Recurrent = list[:c.Layers]
	} else if c.Recurrent == nil {
		c.Recurrent = allBut(c.Layers, k.int("full_attention_interval", 4))
	}
}

// allBut returns a list that is true except for every n-th layer.
func allBut(layers, n int) []bool {
	list := everyNth(layers, max(n, 1))
	for i := range list {
		list[i] = !list[i]
	}
	return list
}

// interval returns n if exactly every n-th layer has attention, else 0.
func (c *Config) interval() int {
	n := 1 + slices.Index(c.Recurrent, false)
	if n == 0 || !slices.Equal(c.Recurrent, allBut(c.Layers, n)) {
		return 0
	}
	return n
}

func writeDeltaKeys(c *Config, set func(string, any)) {
	d := &c.Delta
	set("ssm.conv_kernel", uint32(c.Kernel))
	set("ssm.state_size", uint32(d.KeyDim))
	set("ssm.group_count", uint32(d.KeyHeads))
	set("ssm.time_step_rank", uint32(d.ValueHeads))
	set("ssm.inner_size", uint32(d.ValueHeads*d.ValueDim))
	set("rope.dimension_sections", []int32{int32(c.Rope.Dims / 2), 0, 0, 0})
	set("full_attention_interval", uint32(cmp.Or(c.interval(), 4)))
	if c.interval() == 0 {
		list := make([]bool, c.Layers+c.Ahead) // c.Recurrent may be shorter
		copy(list, c.Recurrent)
		set("attention.recurrent_layers", list)
	}
}

func readDeltaFields(h *hfConfig, c *Config) error {
	c.Kernel = h.LinearKernel
	c.Delta = DeltaConfig{KeyHeads: h.LinearKeyHeads, ValueHeads: h.LinearValueHeads, KeyDim: h.LinearKeyDim,
		ValueDim: h.LinearValueDim}
	if !h.OutputGate {
		return errors.New("attn_output_gate is false: want true, gates of attention's results")
	}
	return nil
}

func writeDeltaFields(c *Config, m map[string]any) error {
	d := &c.Delta
	m["linear_conv_kernel_dim"] = c.Kernel
	if n := c.interval(); n > 0 {
		m["full_attention_interval"] = n
	}
	m["linear_num_key_heads"], m["linear_num_value_heads"] = d.KeyHeads, d.ValueHeads
	m["linear_key_head_dim"], m["linear_value_head_dim"] = d.KeyDim, d.ValueDim
	m["partial_rotary_factor"] = share(c.Rope.Dims, c.HeadDim)
	return nil
}

// deltaNet builds a layer of gated DeltaNet.
func (b *builder) deltaNet(name func(part string) string) (nn.Recurrent, nn.Linear) {
	c, d := b.c, b.c.Delta
	channels, values := c.size(deltaChannels, 0), c.size(deltaValues, 0)
	net := &nn.DeltaNet{
		QKV: b.linear(name("attn_qkv"), channels, c.Hidden), Z: b.linear(name("attn_gate"), values, c.Hidden),
		Conv: b.convolution(name("ssm_conv1d"), channels),
		A:    b.vector(name("ssm_a"), d.ValueHeads), Bias: b.vector(name("ssm_dt.bias"), d.ValueHeads),
		Norm:     b.norm(name("ssm_norm"), d.ValueDim),
		KeyHeads: d.KeyHeads, ValueHeads: d.ValueHeads, KeyDim: d.KeyDim, ValueDim: d.ValueDim, Grouped: d.Grouped,
	}
	if b.arch.has("ssm_ba") {
		net.BetaAlpha = new(b.linear(name("ssm_ba"), 2*d.ValueHeads, c.Hidden))
	} else {
		net.Alpha, net.Beta = b.linear(name("ssm_alpha"), d.ValueHeads, c.Hidden), b.linear(name("ssm_beta"),
			d.ValueHeads, c.Hidden)
	}
	return net, b.linear(name("ssm_out"), c.Hidden, values)
}
