package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// deepseek2 is DeepSeek-V2-Lite: latent attention and, after dense first layers, experts chosen by
// a softmax alongside shared ones that all rows use.
var deepseek2 = architecture{
	name: "deepseek2", modelType: "deepseek_v2", class: "DeepseekV2ForCausalLM",
	keys:   latentKeys,
	fields: "n_routed_experts",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, RoutedExperts: 64, ExpertFFN: 1407, SharedExperts: 2,
		RoutedScale: 1, LatentRank: 512,
		QueryRank: 1536, PlainDim: 128, RotatedDim: 64, ValueDim: 128, ScoringFunc: softmax, TopKMethod: greedy},
	layer:      latentLayer,
	neighbours: true, interleaved: true, rotated: 1, experts: "n_routed_experts", latent: true, ownRope: true,
	ahead: numberedAhead,

	implied:     func(c *Config) { c.impliedLatent() },
	readKeys:    func(k *keys, c *Config) { c.readLatentKeys(k) },
	writeKeys:   func(c *Config, set func(string, any)) { c.writeLatentKeys(set) },
	readFields:  readLatentFields,
	writeFields: writeLatentFields,
}

// deepseek3 is DeepSeek-V3 and its relatives in folders: experts are chosen by σ and a bias, in groups.
var deepseek3 = func() architecture {
	a := deepseek2
	a.modelType, a.class = deepseek3Type, deepseek3Class
	a.defaults = hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, RoutedExperts: 256, Used: 8, ExpertFFN: 2048,
		SharedExperts: 1, FirstDense: 3,
		RoutedScale: 2.5, Groups: 8, TopGroups: 4, NormTopK: true, LatentRank: 512, QueryRank: 1536, PlainDim: 128,
		RotatedDim: 64, ValueDim: 128, ScoringFunc: sigmoid, TopKMethod: noAuxiliary}
	return a
}()

// glm4lite is GLM-4.7-Flash in folders. Only its first layer is dense, unless the folder lists the layers.
var glm4lite = func() architecture {
	a := deepseek3
	a.modelType, a.class = "glm4_moe_lite", "Glm4MoeLiteForCausalLM"
	a.defaults = hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, RoutedExperts: 64, Used: 4, ExpertFFN: 1536,
		SharedExperts: 1, FirstDense: 1,
		RoutedScale: 1.8, Groups: 1, TopGroups: 1, NormTopK: true, LatentRank: 512, QueryRank: 768, PlainDim: 192,
		RotatedDim: 64, ValueDim: 256, ScoringFunc: sigmoid, TopKMethod: noAuxiliary}
	return a
}()

// youtu is Youtu-LLM: latent attention and no experts, in GGUF files under the same name.
var youtu = func() architecture {
	a := deepseek2
	a.modelType, a.class = "youtu", "YoutuForCausalLM"
	a.fields, a.experts = "", ""
	a.ahead, a.implied = nil, nil
	a.keys = rmsAnd(latentOnlyKeys + " leading_dense_block_count expert_feed_forward_length expert_shared_count")
	a.defaults = hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, Tied: true, LatentRank: 512, QueryRank: 1536, PlainDim: 128,
		RotatedDim: 64, ValueDim: 128}
	a.layer = slices.Concat(latentAttention, []part{ffnGate, ffnUp, ffnDown})
	a.readKeys = func(k *keys, c *Config) {
		c.readLatentOnly(k)
		for _, key := range []struct {
			name string
			want int
		}{{"leading_dense_block_count", c.Layers}, {"expert_feed_forward_length", c.FFN}, {"expert_shared_count", 0}} {
			if n := k.int(key.name, key.want); n != key.want {
				k.refuse(key.name, fmt.Sprintf("is %d, but there are no experts: want %d", n, key.want))
			}
		}
	}
	a.writeKeys = func(c *Config, set func(string, any)) {
		c.writeLatentOnly(set) // llama.cpp wants these keys of all models with this name
		set("leading_dense_block_count", uint32(c.Layers))
		set("expert_feed_forward_length", uint32(c.FFN))
		set("expert_shared_count", uint32(0))
	}
	a.readFields = func(h *hfConfig, c *Config) error { return h.readLatentPlain(c) }
	a.writeFields = func(c *Config, m map[string]any) error { return c.writeLatent(m) }
	return a
}()

const deepseek3Type, deepseek3Class = "deepseek_v3", "DeepseekV3ForCausalLM"

// The values of scoring_func, and those of topk_method: the best experts, or the best with a bias,
// which training adjusts instead of using an auxiliary loss.
const (
	softmax, sigmoid    = "softmax", "sigmoid"
	greedy, noAuxiliary = "greedy", "noaux_tc"
)

var latentKeys = rmsAnd(groupedKeys + " " + latentOnlyKeys)

const latentOnlyKeys = `attention.kv_lora_rank attention.q_lora_rank attention.key_length_mla attention.value_length_mla`

func withQueryRank(c *Config, layer int) bool { return c.Latent.QueryRank > 0 && c.attends(layer) }

var latentLayer = slices.Concat(latentAttention, groupedParts)

// latentAttention are the norms of a layer and its attention, whose queries and output Kimi Linear's recurrent layers
// have too.
var latentAttention = slices.Concat(
	[]part{attnNorm, ffnNorm},
	only(func(c *Config, layer int) bool { return c.Latent.QueryRank == 0 || c.recurrent(layer) },
		part{name: "attn_q", folder: "self_attn.q_proj", out: latentQueries, in: hidden}),
	only(withQueryRank,
		part{name: "attn_q_a", folder: "self_attn.q_a_proj", out: latentQueryRank, in: hidden},
		part{name: "attn_q_a_norm", folder: "self_attn.q_a_layernorm", out: latentQueryRank},
		part{name: "attn_q_b", folder: "self_attn.q_b_proj", out: latentQueries, in: latentQueryRank}),
	only((*Config).attends,
		part{name: "attn_kv_a_mqa", folder: "self_attn.kv_a_proj_with_mqa", out: latentKey, in: hidden},
		part{name: "attn_kv_a_norm", folder: "self_attn.kv_a_layernorm", out: latentRank},
		part{name: "attn_k_b", folder: "self_attn.kv_b_proj", out: latentRank, in: latentPlain, split: true, half: 1},
		part{name: "attn_v_b", folder: "self_attn.kv_b_proj", out: latentValue, in: latentRank, split: true, half: 2}),
	[]part{{name: "attn_output", folder: "self_attn.o_proj", out: hidden, in: latentValues}})

// impliedLatent sets values that files do not state: in files with the vocabulary and layers of
// GLM-4.7-Flash, which may lack the key, experts are chosen by σ.
func (c *Config) impliedLatent() {
	c.Rule.Sigmoid = (c.Layers == 47 || c.Layers == 48) && c.Vocab == 154880
	c.Rule.All = !c.Rule.Sigmoid
}

func (c *Config) readLatentKeys(k *keys) {
	flash := c.Rule.Sigmoid
	c.Rule.Sigmoid = false
	if flash && !k.has("expert_gating_func") {
		c.Rule.Sigmoid = true
	}
	c.readGrouped(k)
	c.readLatentOnly(k)
	c.refuseGroups(func(groups int) { k.refuse("expert_group_count", fmt.Sprintf("is %d, with a softmax", groups)) })
}

// readLatentOnly reads the keys of latent attention.
func (c *Config) readLatentOnly(k *keys) {
	if !k.has("attention.key_length_mla") {
		k.refuse("attention.key_length_mla", "is missing, and the file holds attn_kv_b, as early files do: convert the model again")
		return
	}
	c.Latent = LatentConfig{Rank: k.int("attention.kv_lora_rank"), QueryRank: k.int("attention.q_lora_rank", 0),
		PlainDim: k.int("attention.key_length_mla") - c.Rope.Dims, ValueDim: k.int("attention.value_length_mla")}
	if c.HeadDim != c.Latent.Rank+c.Rope.Dims {
		k.refuse("rope.dimension_count", fmt.Sprintf("is %d, key %q is %d and key %q is %d: the first two do not add up to the third",
			c.Rope.Dims, k.name("attention.kv_lora_rank"), c.Latent.Rank, k.name("attention.key_length"), c.HeadDim))
	}
	if c.Latent.PlainDim < 1 {
		k.refuse("attention.key_length_mla", fmt.Sprintf("is %d, of which %d are rotated",
			c.Latent.PlainDim+c.Rope.Dims, c.Rope.Dims))
	}
	if v := k.int("attention.value_length", c.Latent.Rank); v != c.Latent.Rank {
		k.refuse("attention.value_length", fmt.Sprintf("is %d, but key %q is %d", v,
			k.name("attention.kv_lora_rank"), c.Latent.Rank))
	}
	if y := c.Rope.Yarn; y != nil {
		y.Plain = true
		y.LogMul = decimal(float64(float32(10 * y.LogMul)))
		if !(y.LogMul > 0) {
			k.refuse("rope.scaling.yarn_log_multiplier", "is missing, with yarn")
		}
	}
}

// refuseGroups calls tell if groups of experts are chosen by a softmax: DeepSeek-V2 ranks groups by
// their best expert, not by their two best.
func (c *Config) refuseGroups(tell func(groups int)) {
	if !c.Rule.Sigmoid && c.Rule.Groups > 1 {
		tell(c.Rule.Groups)
	}
}

func (c *Config) writeLatentKeys(set func(string, any)) {
	c.writeGrouped(set)
	c.writeLatentOnly(set)
}

// writeLatentOnly writes what readLatentOnly reads.
func (c *Config) writeLatentOnly(set func(string, any)) {
	l := &c.Latent
	set("attention.head_count_kv", uint32(1))
	set("attention.kv_lora_rank", uint32(l.Rank))
	if l.QueryRank > 0 {
		set("attention.q_lora_rank", uint32(l.QueryRank))
	}
	set("attention.key_length", uint32(c.HeadDim))
	set("attention.value_length", uint32(l.Rank))
	set("attention.key_length_mla", uint32(l.PlainDim+c.Rope.Dims))
	set("attention.value_length_mla", uint32(l.ValueDim))
	if y := c.Rope.Yarn; y != nil {
		set("rope.scaling.yarn_log_multiplier", float32(y.LogMul/10))
	}
}

// readLatent reads the shape of latent attention, and the rotation.
func (h *hfConfig) readLatent(c *Config) error {
	if h.KVHeads != 0 && h.KVHeads != h.Heads {
		return fmt.Errorf("num_key_value_heads is %d: want %d, the number of heads, which share one latent vector", h.KVHeads, h.Heads)
	}
	if h.HeadDim != 0 && h.HeadDim != h.RotatedDim && h.HeadDim != h.PlainDim+h.RotatedDim {
		return fmt.Errorf("head_dim is %d: want qk_rope_head_dim, %d, or no such field", h.HeadDim, h.RotatedDim)
	}
	c.HeadDim = h.RotatedDim
	if err := h.rope(h.arch(), c); err != nil {
		return err
	}
	if c.Rope.Dims != h.RotatedDim {
		return fmt.Errorf("partial_rotary_factor: %d of %d dimensions are rotated: want all of qk_rope_head_dim", c.Rope.Dims, h.RotatedDim)
	}
	c.SetLatent(LatentConfig{Rank: h.LatentRank, QueryRank: int(h.QueryRank), PlainDim: h.PlainDim, ValueDim: h.ValueDim})
	return nil
}

// readLatentPlain is readLatent for models whose scaling of positions keeps the lengths of queries and keys.
func (h *hfConfig) readLatentPlain(c *Config) error {
	if err := h.readLatent(c); err != nil {
		return err
	}
	if y := c.Rope.Yarn; y != nil {
		if !(y.LogMul > 0) || math.Abs(c.Rope.factor()-1) > 1e-6 {
			return errors.New("rope_scaling: yarn with different mscale and mscale_all_dim, or without them: want the same positive number for both")
		}
		y.Plain = true
		c.Rope.Attn = 0
	}
	return nil
}

func readLatentFields(h *hfConfig, c *Config) error {
	if err := h.readLatentPlain(c); err != nil {
		return err
	}
	c.Rule.Sigmoid = h.arch().defaults.ScoringFunc == sigmoid
	c.Rule.All = !c.Rule.Sigmoid
	if err := h.readGrouped(c); err != nil {
		return err
	}
	if err := h.readMLPTypes(c); err != nil {
		return err
	}
	var err error
	c.refuseGroups(func(groups int) { err = fmt.Errorf("n_group is %d, with a softmax: not supported", groups) })
	a := h.arch()
	switch {
	case err != nil:
	case h.ScoringFunc != a.defaults.ScoringFunc:
		err = fmt.Errorf("scoring_func is %q: %s models run here use %q", h.ScoringFunc, h.ModelType, a.defaults.ScoringFunc)
	case h.TopKMethod != a.defaults.TopKMethod && !(c.Rule.All && h.TopKMethod == "group_limited_greedy"):
		err = fmt.Errorf("topk_method is %q: %s models run here use %q", h.TopKMethod, h.ModelType, a.defaults.TopKMethod)
	case c.Rule.All && c.Rule.Norm && !a.defaults.NormTopK:
		err = fmt.Errorf("norm_topk_prob is true: %s models run here have false", h.ModelType)
	}
	return err
}

// readMLPTypes reads how many layers, the first ones, have an MLP in place of experts, if it is listed.
func (h *hfConfig) readMLPTypes(c *Config) error {
	if h.MLPTypes == nil {
		return nil
	}
	n, ok := denseFirst(h.MLPTypes)
	if !ok || len(h.MLPTypes) != c.Layers {
		return fmt.Errorf("mlp_layer_types lists %d layers: want %d, dense ones first", len(h.MLPTypes), c.Layers)
	}
	c.Dense = n
	return nil
}

// writeLatent writes what readLatent reads.
func (c *Config) writeLatent(m map[string]any) error {
	l := &c.Latent
	m["num_key_value_heads"] = c.Heads
	m["kv_lora_rank"], m["q_lora_rank"] = l.Rank, nil
	if l.QueryRank > 0 {
		m["q_lora_rank"] = l.QueryRank
	}
	m["qk_nope_head_dim"], m["qk_rope_head_dim"] = l.PlainDim, c.Rope.Dims
	m["v_head_dim"] = l.ValueDim
	m["head_dim"] = c.Rope.Dims
	scaling, err := c.Rope.fields()
	if scaling != nil {
		m["rope_scaling"] = scaling
	}
	return err
}

func writeLatentFields(c *Config, m map[string]any) error {
	err := errors.Join(c.writeGroupedFields(m), c.writeLatent(m))
	m["scoring_func"], m["topk_method"] = softmax, greedy
	if c.Rule.Sigmoid {
		m["model_type"], m["architectures"] = deepseek3Type, []string{deepseek3Class}
		m["scoring_func"], m["topk_method"] = sigmoid, noAuxiliary
	}
	if c.Rule.All && c.Rule.Norm && !c.arch().defaults.NormTopK {
		err = errors.Join(err, errors.New("key expert_weights_norm is true, with a softmax: config.json of deepseek_v2 cannot express it"))
	}
	return err
}
