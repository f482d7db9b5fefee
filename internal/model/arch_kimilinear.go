package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/nn"
)

// kimiLinear is Kimi Linear: three of four layers are Kimi Delta Attention, the others latent attention that does
// not rotate positions in; experts are those of DeepSeek-V3. As in transformers, latentEps is the epsilon of the
// norms within latent attention; llama.cpp uses the file's.
var kimiLinear = architecture{
	name: "kimi-linear", modelType: kimiLinearType, class: kimiLinearClass,
	keys:   rmsAnd(strings.Join(latentKeys.Obeyed, " ") + " ssm.conv_kernel kda.head_dim"),
	fields: "model_max_length num_local_experts",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, UsedPerToken: 8, ExpertFFN: 1024, NumSharedExperts: 1,
		FirstDense: 1, RoutedScale: 2.446, ExpertGroups: 1, TopGroups: 1, NormTopK: true, LatentRank: 512, PlainDim: 128,
		RotatedDim: 64, ValueDim: 128, ScoringFunc: sigmoid, TopKMethod: noAuxiliary, RouterAct: sigmoid,
		LinearHeads: 32, LinearHeadDim: 128, LinearKernel: 4},
	layer:  slices.Concat(latentAttention, kimiDeltaParts, kimiExperts()),
	hybrid: true, kind: "linear_attention", heads: true, latent: true, ownRope: true, rotated: 1,
	experts: "num_experts",

	recurrent: (*builder).kimiDelta,
	implied:   func(c *Config) { c.impliedLatent(); c.Rule.Norm = true },
	readKeys: func(k *keys, c *Config) {
		c.setUnrotated(c.Rope.Dims)
		c.readLatentKeys(k)
		c.Rule.Norm = k.bool("expert_weights_norm", true)
		if !c.Rule.Sigmoid {
			k.refuse("expert_gating_func", fmt.Sprintf("is not %d", bySigma))
		}
		c.Kernel = k.int("ssm.conv_kernel")
		c.setKimiDelta(k.int("kda.head_dim"))
	},
	writeKeys: func(c *Config, set func(string, any)) {
		c.writeLatentKeys(set)
		set("attention.head_count_kv", c.kvHeadsKey())
		set("ssm.conv_kernel", uint32(c.Kernel))
		set("kda.head_dim", uint32(c.Delta.KeyDim))
	},
	readFields:  readKimiFields,
	writeFields: writeKimiFields,
	check:       olmoCheck,
}

const kimiLinearType, kimiLinearClass = "kimi_linear", "KimiLinearForCausalLM"

// kimiDeltaParts are the parts of Kimi Delta Attention that are not those of latent attention.
var kimiDeltaParts = only((*Config).recurrent,
	part{name: "attn_k", folder: "self_attn.k_proj", out: deltaValues, in: hidden},
	part{name: "attn_v", folder: "self_attn.v_proj", out: deltaValues, in: hidden},
	part{name: "ssm_conv1d_q", folder: "self_attn.q_conv1d", out: deltaValues, in: kernel, dims: depthwise},
	part{name: "ssm_conv1d_k", folder: "self_attn.k_conv1d", out: deltaValues, in: kernel, dims: depthwise},
	part{name: "ssm_conv1d_v", folder: "self_attn.v_conv1d", out: deltaValues, in: kernel, dims: depthwise},
	part{name: "ssm_f_a", folder: "self_attn.f_a_proj", out: deltaHead, in: hidden},
	part{name: "ssm_f_b", folder: "self_attn.f_b_proj", out: deltaValues, in: deltaHead},
	part{name: "ssm_beta", folder: "self_attn.b_proj", out: deltaHeads, in: hidden},
	part{name: "ssm_a", whole: true, folder: "self_attn.A_log", out: deltaHeads, in: one, bare: true, decay: true,
		dims: func(heads, one int) []int { return []int{1, 1, heads, one} }},
	part{name: "ssm_dt", ending: ".bias", folder: "self_attn.dt_bias", out: deltaValues, bare: true},
	part{name: "ssm_g_a", folder: "self_attn.g_a_proj", out: deltaHead, in: hidden},
	part{name: "ssm_g_b", folder: "self_attn.g_b_proj", out: deltaValues, in: deltaHead},
	part{name: "ssm_norm", folder: "self_attn.o_norm", out: deltaHead})

// depthwise is the shape of a convolution's tensor.
func depthwise(channels, taps int) []int { return []int{channels, 1, taps} }

// kimiExperts are the experts of DeepSeek-V3 under Mixtral's names.
func kimiExperts() []part {
	parts := grouped(part{folder: "mlp.gate.e_score_correction_bias", when: isSparse})
	names := strings.NewReplacer("mlp.", "block_sparse_moe.", ".*.gate_proj", ".*.w1", ".*.down_proj", ".*.w2",
		".*.up_proj", ".*.w3")
	for i := range parts {
		switch parts[i].name {
		case "ffn_gate", "ffn_up", "ffn_down": // of dense layers
		default:
			parts[i].folder = names.Replace(parts[i].folder)
		}
	}
	return parts
}

// setUnrotated turns rotation off in all layers of latent attention whose keys share dims dimensions.
func (c *Config) setUnrotated(dims int) {
	c.Rope = RopeConfig{Base: 10000, Dims: dims, Scale: 1}
	c.NoRope = everyNth(c.Layers, 1)
}

// setKimiDelta gives recurrent layers as many heads as latent attention has.
func (c *Config) setKimiDelta(dim int) {
	c.Delta = DeltaConfig{KeyHeads: c.Heads, ValueHeads: c.Heads, KeyDim: dim, ValueDim: dim}
}

// linearAttention is linear_attn_config of config.json. Layers count from 1.
type linearAttention struct {
	Attention []int `json:"full_attn_layers"`
	Delta     []int `json:"kda_layers"`
	Heads     int   `json:"num_heads"`
	HeadDim   int   `json:"head_dim"`
	Kernel    int   `json:"short_conv_kernel_size"`
}

// kinds are the two lists as layer_types.
func (l *linearAttention) kinds(layers int) []string {
	types := make([]string, layers)
	for kind, list := range map[string][]int{"full_attention": l.Attention, "linear_attention": l.Delta} {
		for _, n := range list {
			if n > 0 && n <= layers {
				types[n-1] = kind
			}
		}
	}
	return types
}

func readKimiFields(h *hfConfig, c *Config) error {
	l := linearAttention{Heads: h.LinearHeads, HeadDim: h.LinearHeadDim, Kernel: h.LinearKernel}
	if o := h.LinearAttn; o != nil {
		l = linearAttention{Heads: cmp.Or(o.Heads, l.Heads), HeadDim: cmp.Or(o.HeadDim, l.HeadDim),
			Kernel: cmp.Or(o.Kernel, l.Kernel)}
	}
	h.SharedExperts, h.Groups = h.NumSharedExperts, h.ExpertGroups
	if h.Renormalize != nil {
		h.NormTopK = *h.Renormalize
	}
	h.HeadDim, h.hfRopes = 0, hfRopes{} // which are not used
	err := readLatentFields(h, c)
	c.setUnrotated(h.RotatedDim)
	c.Kernel = l.Kernel
	c.setKimiDelta(l.HeadDim)
	switch {
	case err != nil:
	case h.RouterAct != sigmoid:
		err = fmt.Errorf("moe_router_activation_func is %q: want %s", h.RouterAct, sigmoid)
	case l.Heads != c.Heads:
		err = fmt.Errorf("linear_attn_config has num_heads %d: want num_attention_heads, %d", l.Heads, c.Heads)
	}
	return err
}

func writeKimiFields(c *Config, m map[string]any) error {
	err := writeLatentFields(c, m)
	for name, published := range map[string]string{"max_position_embeddings": "model_max_length",
		"num_experts_per_tok": "num_experts_per_token", "norm_topk_prob": "moe_renormalize",
		"n_shared_experts": "num_shared_experts", "n_group": "num_expert_group",
		"scoring_func": "moe_router_activation_func"} {
		m[published] = m[name]
		delete(m, name)
	}
	m["model_type"], m["architectures"] = kimiLinearType, []string{kimiLinearClass}
	l := linearAttention{Attention: []int{}, Delta: []int{}, Heads: c.Heads, HeadDim: c.Delta.KeyDim, Kernel: c.Kernel}
	for i := range c.Layers {
		if c.recurrent(i) {
			l.Delta = append(l.Delta, i+1)
		} else {
			l.Attention = append(l.Attention, i+1)
		}
	}
	m["linear_attn_config"], m["mla_use_nope"] = l, true
	for _, name := range []string{"layer_types", "head_dim", "topk_method", "rope_theta"} {
		delete(m, name)
	}
	if c.Rule.All {
		err = errors.Join(err, errors.New("experts are chosen by a softmax: config.json of kimi_linear cannot express it"))
	}
	return err
}

// kimiDelta builds a layer of Kimi Delta Attention.
func (b *builder) kimiDelta(name func(part string) string) (nn.Recurrent, nn.Linear) {
	c := b.c
	heads, dim := c.Delta.ValueHeads, c.Delta.ValueDim
	width := heads * dim
	low := func(part string) [2]nn.Linear {
		return [2]nn.Linear{b.linear(name(part+"_a"), dim, c.Hidden), b.linear(name(part+"_b"), width, dim)}
	}
	d := &nn.KimiDelta{
		Q: b.linear(name("attn_q"), width, c.Hidden), K: b.linear(name("attn_k"), width, c.Hidden),
		V: b.linear(name("attn_v"), width, c.Hidden), Beta: b.linear(name("ssm_beta"), heads, c.Hidden),
		Decay: low("ssm_f"), Gate: low("ssm_g"),
		Conv: nn.Convolution{Taps: make([][]float32, c.Kernel)},
		A:    slices.Concat(b.vectors(name("ssm_a"), heads, 1)...), Bias: b.vector(name("ssm_dt.bias"), width),
		Norm: b.norm(name("ssm_norm"), dim), Heads: heads, Dim: dim,
	}
	for _, part := range []string{"ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v"} {
		for i, tap := range b.convolution(name(part), width).Taps {
			d.Conv.Taps[i] = append(d.Conv.Taps[i], tap...)
		}
	}
	return d, b.linear(name("attn_output"), c.Hidden, width)
}
