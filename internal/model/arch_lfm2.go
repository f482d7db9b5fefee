package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/nn"
)

// lfm2 is LFM2 and LFM2.5: most layers have a short convolution instead of attention.
var lfm2 = architecture{
	name: "lfm2", modelType: "lfm2", class: "Lfm2ForCausalLM",
	keys:   rmsAnd("shortconv.l_cache"),
	fields: "norm_eps conv_L_cache",
	defaults: hfConfig{HiddenAct: "silu", NormEps: 1e-5, KVHeads: 8, Tied: true, ConvLength: 3,
		AdjustFFN: true, FFNMultiplier: 1, FFNMultiple: 256, hfRopes: hfRopes{defaultTheta: 1e6}},
	top: []part{
		llamaTop[0],
		{name: "token_embd_norm", folder: "model.embedding_norm", as: "output_norm", out: hidden},
		llamaTop[2],
	},
	layer: []part{
		{name: "attn_norm", folder: "operator_norm", out: hidden}, {name: "ffn_norm", folder: "ffn_norm", out: hidden},
		{name: "shortconv.in_proj", folder: "conv.in_proj", out: convIn, in: hidden, when: (*Config).recurrent},
		{name: "shortconv.conv", folder: "conv.conv", out: hidden, in: kernel, conv: true, when: (*Config).recurrent},
		{name: "shortconv.out_proj", folder: "conv.out_proj", out: hidden, in: hidden, when: (*Config).recurrent},
		{name: "attn_q_norm", folder: "self_attn.q_layernorm", out: head, when: (*Config).attends},
		{name: "attn_k_norm", folder: "self_attn.k_layernorm", out: head, when: (*Config).attends},
		{name: "attn_q", folder: "self_attn.q_proj", out: queries, in: hidden, heads: true, when: (*Config).attends},
		{name: "attn_k", folder: "self_attn.k_proj", out: keyHeads, in: hidden, heads: true, when: (*Config).attends},
		{name: "attn_v", folder: "self_attn.v_proj", out: keyHeads, in: hidden, when: (*Config).attends},
		{name: "attn_output", folder: "self_attn.out_proj", out: hidden, in: queries, when: (*Config).attends},
		{name: "ffn_gate", folder: "feed_forward.w1", out: inner, in: hidden},
		{name: "ffn_up", folder: "feed_forward.w3", out: inner, in: hidden},
		{name: "ffn_down", folder: "feed_forward.w2", out: hidden, in: inner},
	},
	square: true, hybrid: true, kind: "conv", heads: true,

	recurrent: (*builder).shortConv,
	readKeys:  func(k *keys, c *Config) { c.Kernel = k.int("shortconv.l_cache") },
	writeKeys: func(c *Config, set func(string, any)) { set("shortconv.l_cache", uint32(c.Kernel)) },
	readFields: func(h *hfConfig, c *Config) error {
		c.Kernel, c.NormEps = h.ConvLength, float32(h.NormEps)
		c.FFN = cmp.Or(h.BlockFFN, c.FFN)
		if h.TiedToo != nil {
			c.Tied = *h.TiedToo
		}
		if !h.AdjustFFN {
			return nil
		}
		if h.FFNMultiple < 1 || !(h.FFNMultiplier > 0 && h.FFNMultiplier < maxWidth) {
			return fmt.Errorf("block_multiple_of is %d and block_ffn_dim_multiplier is %g: want positive numbers",
				h.FFNMultiple, h.FFNMultiplier)
		}
		n := int(h.FFNMultiplier * float64(2*c.FFN/3))
		c.FFN = (n + h.FFNMultiple - 1) / h.FFNMultiple * h.FFNMultiple
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["norm_eps"], m["conv_L_cache"] = decimal(float64(c.NormEps)), c.Kernel
		m["block_auto_adjust_ff_dim"] = false
		m["conv_bias"] = false
		delete(m, "rms_norm_eps")
		return nil
	},
	check: func(c *Config) error {
		if c.Hybrid() && !slices.Contains(c.Recurrent, false) {
			return errors.New("no layer has attention: an lfm2 model has some")
		}
		return nil
	},
}

// shortConv builds a layer of short convolution.
func (b *builder) shortConv(name func(part string) string) (nn.Recurrent, nn.Linear) {
	d := b.c.Hidden
	conv := &nn.ShortConv{In: b.linear(name("shortconv.in_proj"), 3*d, d), Conv: b.convolution(name("shortconv.conv"), d)}
	return conv, b.linear(name("shortconv.out_proj"), d, d)
}

// convolution builds a depthwise convolution over n channels; its tensor has one row for each.
func (b *builder) convolution(name string, n int) nn.Convolution {
	taps := make([][]float32, b.c.Kernel)
	for t := range taps {
		taps[t] = make([]float32, n)
	}
	for i, row := range b.vectors(name+".weight", n, b.c.Kernel) {
		for t, w := range row {
			taps[t][i] = w
		}
	}
	return nn.Convolution{Taps: taps}
}
