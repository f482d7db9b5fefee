package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// laguna is poolside's Laguna: experts chosen by σ and a bias, after dense first layers; attention's
// results are multiplied by softplus of gates, and layers with a window have other heads and another rotation.
var laguna = architecture{
	name: "laguna", modelType: "laguna", class: "LagunaForCausalLM",
	keys: func() (r ggufkeys.Rules) {
		r = rmsAnd(expertKeys + ` expert_feed_forward_length expert_shared_feed_forward_length leading_dense_block_count
			expert_gating_func expert_weights_norm expert_weights_scale rope.freq_base_swa rope.dimension_count_swa ` +
			windowPattern)
		r.Ignored = append(strings.Fields("expert_shared_count"), r.Ignored...)
		return r
	}(),
	fields: headsField,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 8, HeadDim: 128, Window: 512, Experts: 256,
		Used: 8, ExpertFFN: 512, SharedExpertFFN: 512, MoEScale: 1, Gating: true},
	layer: slices.Concat([]part{
		attnNorm, query, key, value, attnOutput,
		{name: "attn_gate", folder: "self_attn.g_proj", out: gateCount, in: hidden},
		queryNorm, keyNorm, ffnNorm,
	}, lagunaExperts()),
	biases:   map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	softplus: true, window: 4, leading: true, rotated: 1, ownRope: true, experts: "num_experts",

	implied: func(c *Config) { c.Rule.Sigmoid, c.Rule.Norm = true, true },
	local:   func(c *Config) { c.LocalRope = &RopeConfig{Base: 1e4, Dims: c.HeadDim, Scale: 1} },
	readKeys: func(k *keys, c *Config) {
		c.Dense = k.int("leading_dense_block_count")
		c.ExpertFFN = k.int("expert_feed_forward_length")
		c.SharedFFN = k.int("expert_shared_feed_forward_length", c.ExpertFFN)
		c.Rule.Scale = unless1(k.float("expert_weights_scale", 0))
		c.checkGrouped(k, "expert_shared_feed_forward_length")
		k.wantSigmoid()
		if !k.bool("expert_weights_norm", true) {
			k.refuse("expert_weights_norm", "is false")
		}
		if err := c.setHeads(k.each("attention.head_count", c.Layers)); err != nil {
			k.refuse("attention.head_count", "has "+err.Error())
		}
		gate, ok := k.file.Tensor("blk.0.attn_gate.weight")
		c.HeadGates = ok && len(gate.Shape) == 2 && gate.Shape[0] == c.heads(0)
		c.LocalRope = nil
		if c.Window > 0 {
			c.LocalRope = &RopeConfig{Base: k.float("rope.freq_base_swa", c.Rope.Base),
				Dims: k.int("rope.dimension_count_swa", c.Rope.Dims), Scale: 1}
		}
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("leading_dense_block_count", uint32(c.Dense))
		set("expert_feed_forward_length", uint32(c.ExpertFFN))
		set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
		set("expert_gating_func", uint32(bySigma))
		set("expert_weights_norm", true)
		if c.Rule.Scale != 0 {
			set("expert_weights_scale", c.Rule.Scale)
		}
		if c.LocalHeads > 0 {
			set("attention.head_count", c.headsByLayer())
		}
		if c.LocalRope != nil {
			set("rope.freq_base_swa", float32(c.LocalRope.Base))
			set("rope.dimension_count_swa", uint32(c.LocalRope.Dims))
		}
	},
	readFields: func(h *hfConfig, c *Config) error {
		c.Rule.Sigmoid, c.Rule.Norm = true, true
		c.ExpertFFN, c.SharedFFN = int(h.ExpertFFN), h.SharedExpertFFN
		c.Dense, c.Rule.Scale = 1, unless1(h.MoEScale)
		switch g := fmt.Sprint(h.Gating); g {
		case "true", "per-head":
			c.HeadGates = true
		case "per-element":
		default:
			return fmt.Errorf("gating is %s: want true, per-head or per-element", g)
		}
		if err := errors.Join(h.readMLPTypes(c), h.readRopes(c)); err != nil || h.HeadsPerLayer == nil {
			return err
		}
		if err := c.setHeads(h.HeadsPerLayer); err != nil {
			return fmt.Errorf("%s: %w", headsField, err)
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["moe_intermediate_size"], m["shared_expert_intermediate_size"] = c.ExpertFFN, c.SharedFFN
		m["moe_routed_scaling_factor"] = floating(1)
		if c.Rule.Scale != 0 {
			m["moe_routed_scaling_factor"] = floating(decimal(float64(c.Rule.Scale)))
		}
		m["gating"] = "per-element"
		if c.HeadGates {
			m["gating"] = true
		}
		if c.LocalHeads > 0 {
			m[headsField] = c.headsByLayer()
		}
		m["mlp_layer_types"] = slices.Concat(slices.Repeat([]string{"dense"}, c.Dense),
			slices.Repeat([]string{"sparse"}, c.Layers-c.Dense))
		delete(m, "rope_theta")
		ropes := map[string]any{}
		for kind, r := range map[string]*RopeConfig{"full_attention": &c.Rope, "sliding_attention": c.LocalRope} {
			if r == nil {
				continue
			}
			o, err := r.fields()
			if err != nil {
				return err
			}
			if o == nil {
				o = map[string]any{"rope_type": "default"}
			}
			o["rope_theta"], o["partial_rotary_factor"] = floating(decimal(r.Base)), floating(share(r.Dims, c.HeadDim))
			ropes[kind] = o
		}
		m["rope_parameters"] = ropes
		return nil
	},
}

const headsField = "num_attention_heads_per_layer"

func lagunaExperts() []part {
	parts := grouped(part{folder: "mlp.experts.e_score_correction_bias", when: isSparse})
	for i := range parts {
		parts[i].folder = strings.Replace(parts[i].folder, "mlp.shared_experts.", "mlp.shared_expert.", 1)
	}
	return parts
}

// readRopes reads the rotations of layers without and with a window, which have an object each.
func (h *hfConfig) readRopes(c *Config) error {
	switch p := h.Params; {
	case p == nil || p.Full == nil || c.Window > 0 && p.Sliding == nil:
		return errors.New("rope_parameters: want the objects full_attention and, with windows, sliding_attention")
	case h.Scaling != nil:
		return errors.New("rope_scaling: want it in full_attention of rope_parameters")
	}
	read := func(r *hfRope, def float64, c *Config) error {
		theta, part := def, 1.0
		if r.Theta != nil {
			theta = *r.Theta
		}
		if r.Partial != nil {
			part = *r.Partial
		}
		if !(part > 0 && part <= 1) {
			return fmt.Errorf("rope_parameters: partial_rotary_factor is %g: want more than 0, at most 1", part)
		}
		c.Rope = RopeConfig{Base: theta, Dims: int(part * float64(c.HeadDim))}
		s := r.scaling()
		return s.apply(c)
	}
	if c.Window > 0 {
		local := *c
		if err := read(h.Params.Sliding, 1e4, &local); err != nil {
			return err
		}
		if local.Rope.Scale != 1 || !local.Rope.plain() || local.Rope.Factors != nil {
			return errors.New("rope_parameters: sliding_attention has a scaling: want the type default")
		}
		c.LocalRope = &local.Rope
	}
	return read(h.Params.Full, 5e5, c)
}
