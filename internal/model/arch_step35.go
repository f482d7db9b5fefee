package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// step35 is Step 3.5 Flash, and the text model of Step 3.7 Flash: experts chosen by σ and a bias, after dense first
// layers; gates of attention's heads; layers with a window have other heads and another rotation. In some layers the
// MLP's inner numbers have a limit. The layers that draft are left unused.
var step35 = architecture{
	name: "step35", modelType: "step3p5", class: "Step3p5ForCausalLM",
	keys: func() (r ggufkeys.Rules) {
		r = rmsAnd(expertKeys + ` expert_feed_forward_length expert_shared_feed_forward_length leading_dense_block_count
			expert_gating_func expert_weights_norm expert_weights_scale rope.freq_base_swa rope.dimension_count_swa
			swiglu_clamp_exp swiglu_clamp_shexp ` + windowPattern)
		r.Ignored = append(strings.Fields("moe_every_n_layers"), r.Ignored...)
		return r
	}(),
	fields: headsField,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVGroups: 8, HeadDim: 128, MoEExperts: 288, MoETop: 8,
		ExpertFFN: 1280, ShareDim: 1280, RouterFactor: 1},
	layer: slices.Concat([]part{
		attnNorm, queryNorm, keyNorm, query, key, value, attnOutput,
		{name: "attn_gate", folder: "self_attn.g_proj", out: gateCount, in: hidden},
		ffnNorm,
	}, stepExperts()),
	biases:  map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	shifted: true, window: 4, leading: true, rotated: 1, ownRope: true, halved: true, factored: true,
	varied:  true,
	experts: "moe_num_experts",

	implied: func(c *Config) { c.Rule.Sigmoid, c.HeadGates = true, true },
	local:   laguna.local,
	readKeys: func(k *keys, c *Config) {
		c.Dense = k.int("leading_dense_block_count", 0)
		c.ExpertFFN = k.int("expert_feed_forward_length")
		c.SharedFFN = k.int("expert_shared_feed_forward_length", c.ExpertFFN)
		c.Rule.Scale = unless1(k.float("expert_weights_scale", 0))
		c.Rule.Norm = k.bool("expert_weights_norm", false)
		c.checkGrouped(k, "expert_shared_feed_forward_length")
		k.wantSigmoid()
		if list, ok := k.list("attention.head_count"); ok && len(list) >= c.Layers {
			if err := c.setHeads(list[:c.Layers]); err != nil {
				k.refuse("attention.head_count", "has "+err.Error())
			}
		}
		c.setKVHeads(k)
		c.Limits, c.SharedLimits = k.limits("swiglu_clamp_exp", c), k.limits("swiglu_clamp_shexp", c)
		c.LocalRope = &RopeConfig{Base: k.float("rope.freq_base_swa", c.Rope.Base),
			Dims: k.int("rope.dimension_count_swa", c.Rope.Dims), Scale: 1}
		c.Rope.Dims /= 2
		switch _, ok := k.list("feed_forward_length"); {
		case ok:
			k.refuse("feed_forward_length", "is a list")
		case c.Window == 0:
			k.refuse("attention.sliding_window", "is 0, or missing")
		}
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("leading_dense_block_count", uint32(c.Dense))
		set("expert_feed_forward_length", uint32(c.ExpertFFN))
		set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
		set("expert_gating_func", uint32(bySigma))
		set("expert_weights_norm", c.Rule.Norm)
		if c.Rule.Scale != 0 {
			set("expert_weights_scale", c.Rule.Scale)
		}
		if c.LocalHeads > 0 {
			set("attention.head_count", c.headsByLayer())
		}
		for key, list := range map[string][]float32{"swiglu_clamp_exp": c.Limits, "swiglu_clamp_shexp": c.SharedLimits} {
			if list != nil {
				set(key, list)
			}
		}
		set("rope.dimension_count", uint32(2*c.Rope.Dims))
		if n := c.LocalRope.Dims; n != 2*c.Rope.Dims {
			set("rope.dimension_count_swa", uint32(n))
		}
		writeLocalBase(c, set)
		set(windowPattern, c.Windowed)
	},
	readFields: readStepFields, writeFields: writeStepFields,
	check: func(c *Config) error {
		if c.Tied || c.Window == 0 {
			return errors.New("GGUF files of step35 have an output matrix separate from the embedding, and a sliding window")
		}
		return nil
	},
}

func stepExperts() []part {
	parts := grouped(part{folder: "moe.router_bias", plain: true, when: isSparse})
	for i := range parts {
		p := &parts[i]
		p.folder = strings.NewReplacer("mlp.shared_experts.", "share_expert.", "mlp.experts.*.", "moe.").Replace(p.folder)
		if p.name == "ffn_gate_inp" {
			p.folder = "moe.gate"
		}
	}
	return parts
}

// limits reads a key with a limit for each layer, or for all.
func (k *keys) limits(key string, c *Config) []float32 {
	if !k.has(key) || c.Layers < 1 {
		return nil
	}
	if x := k.Floats(k.name(key), nil); len(x) == c.Layers || len(x) == c.Layers+c.Ahead {
		return capped(x[:c.Layers])
	}
	if list, ok := k.file.Lookup(k.name(key)); ok && list.Len() > 0 {
		k.refuse(key, fmt.Sprintf("lists %d layers, but there are %d", list.Len(), c.Layers))
		return nil
	}
	return capped(slices.Repeat([]float32{float32(k.float(key))}, c.Layers))
}

// capped returns limits by layer, or nil if there are none.
func capped(list []float32) []float32 {
	if slices.ContainsFunc(list, func(x float32) bool { return x != 0 }) {
		return list
	}
	return nil
}

// limit returns a layer's limit in a list, 0 for none.
func limit(list []float32, layer int) float32 {
	if layer < len(list) {
		return list[layer]
	}
	return 0
}

// otherHeads are the heads of layers with a window in config.json.
type otherHeads struct {
	Heads     int `json:"num_attention_heads"`
	KVHeads   int `json:"num_attention_groups"`
	HeadDim   int `json:"head_dim"`
	TrueWidth int `json:"true_head_dim"`
}

// numbers is a number, or a list of one for each layer.
type numbers []float64

func (n *numbers) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return json.Unmarshal(data, (*[]float64)(n))
	}
	var x *float64
	if err := json.Unmarshal(data, &x); err != nil || x == nil {
		return err
	}
	*n = numbers{*x}
	return nil
}

// ofKind returns the one number that layers with a window have, or those without; ok is false if theirs differ.
func (n numbers) ofKind(c *Config, windowed bool, def float64) (x float64, ok bool) {
	first := true
	for i := range c.Layers {
		if c.windowed(i) != windowed {
			continue
		}
		v := def
		if len(n) == 1 {
			v = n[0]
		} else if i < len(n) {
			v = n[i]
		}
		if !first && v != x {
			return 0, false
		}
		x, first = v, false
	}
	if first {
		return def, true
	}
	return x, true
}

func readStepFields(h *hfConfig, c *Config) error {
	c.KVHeads = cmp.Or(h.KVHeads, h.KVGroups)
	c.Rule.Sigmoid, c.Rule.Norm = true, true
	c.Rule.Scale, c.HeadGates = unless1(h.RouterFactor), true
	c.ExpertFFN, c.SharedFFN = int(h.ExpertFFN), h.ShareDim
	for _, f := range []struct {
		field string
		from  numbers
		to    *[]float32
	}{{"swiglu_limits", h.Limits, &c.Limits}, {"swiglu_limits_shared", h.SharedLimits, &c.SharedLimits}} {
		if len(f.from) > 0 && len(f.from) != c.Layers && len(f.from) != c.Layers+c.Ahead {
			return fmt.Errorf("%s lists %d layers: want %d", f.field, len(f.from), c.Layers)
		}
		var list []float32
		for _, x := range f.from[:min(len(f.from), c.Layers)] {
			list = append(list, float32(x))
		}
		*f.to = capped(list)
	}
	local := cmp.Or(h.SlidingHeads, h.Other.Heads, c.Heads)
	if c.Window > 0 && local != c.Heads {
		c.LocalHeads = local
	}
	switch o := h.Other; {
	case cmp.Or(o.KVHeads, c.KVHeads) != c.KVHeads || cmp.Or(o.HeadDim, c.HeadDim) != c.HeadDim ||
		cmp.Or(o.TrueWidth, c.HeadDim) != c.HeadDim:
		return errors.New("attention_other_setting: want the num_attention_groups and head_dim of the other layers")
	case cmp.Or(h.QueryScalar, float64(c.HeadDim)) != float64(c.HeadDim):
		return fmt.Errorf("query_pre_attn_scalar is %g: want head_dim, %d", h.QueryScalar, c.HeadDim)
	case h.Gating != nil && h.Gating != true && h.Gating != "per-head":
		return fmt.Errorf("gating is %v: want true", h.Gating)
	}
	return errors.Join(h.readMoELayers(c), h.readMLPTypes(c), h.readStepRopes(c))
}

// readMoELayers reads which layers have experts: a text such as 3,4,5, or a list.
func (h *hfConfig) readMoELayers(c *Config) error {
	c.Dense = min(3, c.Layers) // as in transformers
	if h.MoELayersEnum == nil || h.MLPTypes != nil {
		return nil
	}
	text := strings.Trim(fmt.Sprint(h.MoELayersEnum), "[]")
	list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	c.Dense = c.Layers
	for i, s := range list {
		n, err := strconv.Atoi(s)
		if i == 0 {
			c.Dense = n
		}
		if err != nil || n != c.Dense+i {
			return fmt.Errorf("moe_layers_enum is %q: want all layers from one on", text)
		}
	}
	if len(list) != max(0, c.Layers-c.Dense) && len(list) != c.Layers+c.Ahead-c.Dense || c.Dense < 0 || c.Dense > c.Layers {
		return fmt.Errorf("moe_layers_enum is %q: want all layers from one on, of %d", text, c.Layers)
	}
	return nil
}

// readStepRopes reads the rotations of layers without and with a window: from objects for each kind, or from lists by
// layer and a scaling that applies to layers without a window.
func (h *hfConfig) readStepRopes(c *Config) error {
	if p := h.Params; p != nil && p.Full != nil {
		return h.readRopes(c)
	}
	theta, ok := h.Theta.ofKind(c, false, 1e4)
	localTheta, ok2 := h.Theta.ofKind(c, true, 1e4)
	part, ok3 := h.PartialFactors.ofKind(c, false, 1)
	localPart, ok4 := h.PartialFactors.ofKind(c, true, 1)
	switch {
	case !ok || !ok2:
		return errors.New("rope_theta: want one number for layers with a window, and one for the others")
	case !ok3 || !ok4 || !(part > 0 && part <= 1) || !(localPart > 0 && localPart <= 1):
		return errors.New("partial_rotary_factors: want one number up to 1 for layers with a window, and one for the others")
	}
	scaling, params := h.Scaling.scaling(), h.Params.scaling()
	if reflect.DeepEqual(scaling, hfRope{}) {
		scaling = params
	}
	switch {
	case params.Type != "" && !reflect.DeepEqual(params, scaling):
		return errors.New("rope_scaling and rope_parameters disagree: leave one of them out")
	case h.Params != nil && (h.Params.Theta != nil || h.Params.Partial != nil):
		return errors.New("rope_parameters: want rope_theta and partial_rotary_factor only in the objects full_attention and " +
			"sliding_attention")
	}
	if scaling.Type != "" && h.ScaledKinds != nil && !slices.Equal(h.ScaledKinds, []string{"full_attention"}) {
		return fmt.Errorf("yarn_only_types is %v: want full_attention", h.ScaledKinds)
	}
	full := scaling
	full.Theta, full.Partial = &theta, &part
	both := hfConfig{hfRopes: hfRopes{Params: &hfRope{Full: &full, Sliding: &hfRope{Theta: &localTheta, Partial: &localPart}}}}
	return both.readRopes(c)
}

// writeStepFields writes fields as published, which llama.cpp's converter, vLLM and transformers read.
func writeStepFields(c *Config, m map[string]any) error {
	thetas, parts := make([]float64, c.Layers), make([]floating, c.Layers)
	var sparse []string
	for i := range thetas {
		r := &c.Rope
		if c.windowed(i) {
			r = c.LocalRope
		}
		thetas[i], parts[i] = decimal(r.Base), floating(share(r.Dims, c.HeadDim))
		if isSparse(c, i) {
			sparse = append(sparse, strconv.Itoa(i))
		}
	}
	m["rope_theta"], m["partial_rotary_factors"] = thetas, parts
	scaling, err := c.Rope.fields()
	if scaling != nil {
		m["rope_scaling"], m["yarn_only_types"] = scaling, []string{"full_attention"}
	}
	m["num_attention_groups"], m["moe_top_k"] = c.KVHeads, c.Used
	delete(m, "num_key_value_heads")
	delete(m, "num_experts_per_tok")
	m["layer_types"] = c.attentionKinds()
	m["attention_other_setting"] = map[string]any{"attention_type": "sliding_attention", "head_dim": c.HeadDim,
		"num_attention_heads": cmp.Or(c.LocalHeads, c.Heads), "num_attention_groups": c.KVHeads}
	m["moe_layers_enum"] = strings.Join(sparse, ",")
	m["moe_intermediate_size"], m["share_expert_dim"] = c.ExpertFFN, c.SharedFFN
	m["moe_router_scaling_factor"] = floating(1)
	if c.Rule.Scale != 0 {
		m["moe_router_scaling_factor"] = floating(decimal(float64(c.Rule.Scale)))
	}
	maps.Copy(m, map[string]any{"norm_expert_weight": true, "moe_router_activation": sigmoid, "use_moe_router_bias": true,
		"need_fp32_gate": true, "use_head_wise_attn_gate": true, "att_impl_type": "GQA"})
	for field, list := range map[string][]float32{"swiglu_limits": c.Limits, "swiglu_limits_shared": c.SharedLimits} {
		if list != nil {
			m[field] = list
		}
	}
	switch {
	case c.LocalKVHeads > 0:
		return errors.Join(err, errors.New("key attention.head_count_kv: config.json of step3p5 has one number for all layers"))
	case !c.Rule.Norm:
		return errors.Join(err, errors.New("key expert_weights_norm is false: config.json of step3p5 cannot express it"))
	}
	return err
}
