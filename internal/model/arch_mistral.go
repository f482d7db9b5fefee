package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/nn"
)

// mistral is Mistral in folders. Its GGUF files call it llama; other engines read no window there.
var mistral = architecture{
	name: "llama", modelType: "mistral", class: "MistralForCausalLM",
	keys:       rmsKeys,
	defaults:   hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 8, Window: 4096},
	layer:      llamaLayer,
	neighbours: true, window: 1, listed: true,
}

// mistral3 is Ministral 3: YaRN, and queries that are scaled by their position.
var mistral3 = architecture{
	name: "mistral3", modelType: "ministral3", class: "Ministral3ForCausalLM",
	keys:       rmsAnd("attention.scale attention.temperature_scale"),
	fields:     "llama_4_scaling_beta",
	defaults:   hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8, HeadDim: 128},
	layer:      llamaLayer,
	neighbours: true, window: 1, listed: true,

	readKeys: func(k *keys, c *Config) {
		c.setTemper(k.float("attention.temperature_scale", 0))
	},
	writeKeys: func(c *Config, set func(string, any)) {
		if c.Temper.Scale != 0 {
			set("attention.temperature_scale", c.Temper.Scale)
		}
	},
	readFields: func(h *hfConfig, c *Config) error {
		for _, r := range []*hfRope{h.Params, h.Scaling} {
			if r != nil && r.TemperScale != 0 {
				c.setTemper(r.TemperScale)
			}
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		if c.Temper.Scale == 0 {
			return nil
		}
		scaling, ok := m["rope_scaling"].(map[string]any)
		if !ok {
			return errors.New("key attention.temperature_scale without yarn: config.json cannot express it")
		}
		scaling["llama_4_scaling_beta"] = decimal(float64(c.Temper.Scale))
		return nil
	},
	check: func(c *Config) error {
		if c.Temper.Scale != 0 && c.Temper.Length != c.Rope.Original {
			return errors.New("the queries of mistral3 grow in steps as long as the original context")
		}
		return nil
	},
}

// mistral4 is Mistral Small 4: DeepSeek-V2's layers, with queries that are scaled by their position.
var mistral4 = func() architecture {
	a := deepseek2
	a.name = "mistral4"
	a.modelType, a.class = "mistral4", "Mistral4ForCausalLM"
	a.keys.Obeyed = append(slices.Clone(a.keys.Obeyed), "attention.temperature_scale", "attention.temperature_length")
	a.fields += " " + temperField
	a.ahead = nil
	a.defaults = hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, RoutedExperts: 128, Used: 4, ExpertFFN: 2048,
		SharedExperts: 1, RoutedScale: 1, NormTopK: true, LatentRank: 256, QueryRank: 1024, PlainDim: 64,
		RotatedDim: 64, ValueDim: 128, ScoringFunc: softmax, TopKMethod: greedy}
	a.layer = slices.Clone(a.layer)
	for i := range a.layer {
		switch p := &a.layer[i]; p.name {
		case "ffn_gate_exps":
			*p = p.together("mlp.experts.gate_up_proj", 1)
		case "ffn_up_exps":
			*p = p.together("mlp.experts.gate_up_proj", 2)
		case "ffn_down_exps":
			*p = p.together("mlp.experts.down_proj", 0)
		}
	}
	a.readKeys = func(k *keys, c *Config) {
		c.readLatentKeys(k)
		c.setTemper(k.float("attention.temperature_scale", 0))
		if c.Temper.Scale != 0 {
			c.Temper.Length = k.int("attention.temperature_length", c.Temper.Length)
		}
	}
	a.writeKeys = func(c *Config, set func(string, any)) {
		c.writeLatentKeys(set)
		if c.Temper.Scale != 0 {
			set("attention.temperature_scale", c.Temper.Scale)
			set("attention.temperature_length", uint32(c.Temper.Length))
		}
	}
	a.readFields = func(h *hfConfig, c *Config) error {
		if h.Params == nil && h.Scaling == nil { // transformers then uses those of Mistral Small 4
			return errors.New(`rope_parameters is missing: take it from the original config.json`)
		}
		for _, r := range []*hfRope{h.Params, h.Scaling} {
			if r == nil || r.Partial == nil {
				continue
			}
			if x := *r.Partial * float64(h.PlainDim+h.RotatedDim); math.Abs(x-float64(h.RotatedDim)) > 1e-3 {
				return fmt.Errorf("partial_rotary_factor is %g: want qk_rope_head_dim's share of a head", *r.Partial)
			}
			r.Partial = nil
		}
		return errors.Join(readLatentFields(h, c), mistral3.readFields(h, c))
	}
	a.writeFields = func(c *Config, m map[string]any) error {
		err := writeLatentFields(c, m)
		if m["rope_scaling"] == nil {
			m["rope_scaling"] = map[string]any{"rope_type": "default", "original_max_position_embeddings": c.Context}
		}
		m["rope_scaling"].(map[string]any)[temperField] = floating(decimal(float64(c.Temper.Scale)))
		if c.Temper.Scale != 0 && c.Temper.Length != cmp.Or(c.Rope.Original, c.Context) {
			err = errors.Join(err, errors.New("key attention.temperature_length: config.json has the original context alone"))
		}
		return err
	}
	return a
}()

// setTemper makes queries grow with every multiple of the original context that their position passes.
func (c *Config) setTemper(scale float64) {
	length := cmp.Or(c.Rope.Original, c.Context)
	if scale != 0 {
		c.Temper = nn.Temper{Scale: float32(scale), Length: length}
	}
}
