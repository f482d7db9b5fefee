package model

import (
	"cmp"
	"errors"

	"github.com/grovellm/grove/internal/nn"
)

// mistral is Mistral in folders. Its GGUF files call it llama; other engines read no window there.
var mistral = architecture{
	name: "llama", modelType: "mistral", class: "MistralForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 8, Window: 4096},
	prefix:   layersPrefix, top: llamaTop, layer: llamaLayer,
	neighbours: true, window: 1, listed: true,
}

// mistral3 is Ministral 3: YaRN, and queries that are scaled by their position.
var mistral3 = architecture{
	name: "mistral3", modelType: "ministral3", class: "Ministral3ForCausalLM",
	keys:     rmsAnd("attention.scale attention.temperature_scale"),
	fields:   "llama_4_scaling_beta",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8, HeadDim: 128},
	prefix:   layersPrefix, top: llamaTop, layer: llamaLayer,
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

// setTemper makes queries grow with every multiple of the original context that their position passes.
func (c *Config) setTemper(scale float64) {
	length := cmp.Or(c.Rope.Original, c.Context)
	if scale != 0 {
		c.Temper = nn.Temper{Scale: float32(scale), Length: length}
	}
}
