package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/nn"
)

// llama4 is Llama 4: attention within chunks in three of four layers, and none of their rotation in the others, whose
// queries grow with their position; in some layers experts, whose weights multiply their inputs.
// llama.cpp takes the lengths of chunks and of the queries' steps as given.
var llama4 = architecture{
	name: "llama4", modelType: "llama4_text", class: "Llama4ForCausalLM",
	keys: rmsAnd(expertKeys + ` expert_feed_forward_length interleave_moe_layer_step attention.temperature_scale
		attention.temperature_length`),
	fields: "num_local_experts",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8, HeadDim: 128, LocalExperts: 16, Used: 1,
		HeadNorms: true, NoRopeInterval: 4, ChunkSize: llama4Chunk, DenseFFN: 16384, Every: 1, Tuning: true,
		TuneScale: llama4Temper, TuneFloor: llama4Chunk, hfRopes: hfRopes{defaultTheta: 5e5}},
	layer: slices.Concat([]part{attnNorm, ffnNorm, query, key, value, attnOutput},
		only(func(c *Config, layer int) bool { return !c.hasExperts(layer) },
			part{name: "ffn_gate", folder: "feed_forward.gate_proj", out: inner, in: hidden},
			part{name: "ffn_up", folder: "feed_forward.up_proj", out: inner, in: hidden},
			part{name: "ffn_down", folder: "feed_forward.down_proj", out: hidden, in: inner}),
		only((*Config).hasExperts,
			part{name: "ffn_gate_inp", folder: "feed_forward.router", out: experts, in: hidden},
			part{name: "ffn_gate_exps", out: expertInner, in: hidden, each: true}.
				transposed("feed_forward.experts.gate_up_proj", 1),
			part{name: "ffn_up_exps", out: expertInner, in: hidden, each: true}.
				transposed("feed_forward.experts.gate_up_proj", 2),
			part{name: "ffn_down_exps", out: hidden, in: expertInner, each: true}.
				transposed("feed_forward.experts.down_proj", 0),
			part{name: "ffn_gate_shexp", folder: "feed_forward.shared_expert.gate_proj", out: sharedInner, in: hidden},
			part{name: "ffn_up_shexp", folder: "feed_forward.shared_expert.up_proj", out: sharedInner, in: hidden},
			part{name: "ffn_down_shexp", folder: "feed_forward.shared_expert.down_proj", out: hidden, in: sharedInner})),
	biases:     map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	neighbours: true, interleaved: true, normLast: true, chunks: true, window: 4, experts: "num_local_experts",

	implied: func(c *Config) {
		c.Rule = nn.Rule{Sigmoid: true, Inputs: true}
		c.Every = 1
		c.HeadNorms = c.Experts != 128 // Maverick has none
		c.Temper = nn.Temper{Scale: llama4Temper, Length: llama4Chunk, First: 1}
		c.SetWindow(llama4Chunk)
	},
	local: func(c *Config) { c.rotateLocal() },
	readKeys: func(k *keys, c *Config) {
		c.rotateLocal()
		c.Every = k.int("interleave_moe_layer_step", 1)
		c.ExpertFFN = k.int("expert_feed_forward_length")
		c.SharedFFN = c.ExpertFFN
		c.Temper.Scale = float32(k.float("attention.temperature_scale", llama4Temper))
		c.Temper.Length = k.int("attention.temperature_length", llama4Chunk)
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("interleave_moe_layer_step", uint32(c.Every))
		set("expert_feed_forward_length", uint32(c.ExpertFFN))
		if c.Window == 0 {
			set("attention.sliding_window", uint32(0))
		}
		if c.Temper.Scale != llama4Temper || c.Temper.Length != llama4Chunk {
			set("attention.temperature_scale", c.Temper.Scale)
			set("attention.temperature_length", uint32(c.Temper.Length))
		}
	},
	readFields: readLlama4,
	writeFields: func(c *Config, m map[string]any) error {
		delete(m, "sliding_window")
		rotated, types := make([]int, c.Layers), make([]string, c.Layers)
		for i := range rotated {
			types[i] = "full_attention"
			if c.windowed(i) {
				types[i] = "chunked_attention"
			}
			if i >= len(c.NoRope) || !c.NoRope[i] {
				rotated[i] = 1
			}
		}
		m["no_rope_layers"], m["layer_types"] = rotated, types
		m["attention_chunk_size"] = c.Window
		m["intermediate_size"], m["intermediate_size_mlp"] = c.ExpertFFN, c.FFN
		m["interleave_moe_layer_step"], m["use_qk_norm"] = c.Every, c.HeadNorms
		m["attn_temperature_tuning"] = c.Temper.Scale != 0
		m["attn_scale"], m["floor_scale"] = floating(decimal(float64(c.Temper.Scale))), c.Temper.Length
		return nil
	},
	check: func(c *Config) error {
		switch {
		case c.HeadNorms != (c.Experts != 128):
			return errors.New("use_qk_norm: GGUF files of llama4 have it, except with 128 experts")
		case c.Window > 0 && !slices.Equal(c.Windowed, c.arch().windows(c.Layers)):
			return errors.New("layer_types: GGUF files of llama4 have chunks in all layers except every fourth")
		}
		return nil
	},
}

// The positions of a chunk, and of a step in which queries grow by llama4Temper.
const llama4Chunk, llama4Temper = 8192, 0.1

// hasExperts reports whether a layer of Llama 4 has experts.
func (c *Config) hasExperts(layer int) bool { return (layer+1)%max(c.Every, 1) == 0 }

func readLlama4(h *hfConfig, c *Config) error {
	c.FFN, c.ExpertFFN = h.DenseFFN, int(h.IntermediateSize)
	c.SharedFFN = c.ExpertFFN
	c.Rule = nn.Rule{Sigmoid: true, Inputs: true}
	c.HeadNorms, c.Every = h.HeadNorms, h.Every
	if len(h.MoELayers) > 0 {
		c.Every = h.MoELayers[0] + 1
	}
	if h.Tuning != nil && h.Tuning != false && h.Tuning != 0.0 {
		c.Temper = nn.Temper{Scale: float32(h.TuneScale), Length: h.TuneFloor, First: 1}
	}
	rotated := h.NoRope
	if len(rotated) == 0 && h.NoRopeInterval > 0 {
		for _, none := range everyNth(min(c.Layers, maxLayers), h.NoRopeInterval) {
			rotated = append(rotated, map[bool]int{false: 1}[none])
		}
	}
	if len(rotated) != c.Layers || h.LayerTypes != nil && len(h.LayerTypes) != c.Layers {
		return fmt.Errorf("no_rope_layers lists %d layers, layer_types %d: want %d", len(rotated), len(h.LayerTypes), c.Layers)
	}
	var sparse []int
	for i := range c.Layers {
		if c.hasExperts(i) {
			sparse = append(sparse, i)
		}
		chunked := rotated[i] != 0
		if h.LayerTypes != nil {
			chunked = h.LayerTypes[i] == "chunked_attention"
			if !chunked && h.LayerTypes[i] != "full_attention" {
				return fmt.Errorf("layer_types has %q: want full_attention or chunked_attention", h.LayerTypes[i])
			}
		}
		c.Windowed, c.NoRope = append(c.Windowed, chunked), append(c.NoRope, rotated[i] == 0)
		if chunked {
			c.Window = int(h.ChunkSize)
		}
	}
	switch {
	case h.MoELayers != nil && !slices.Equal(h.MoELayers, sparse):
		return fmt.Errorf("moe_layers is %v: want every %d-th layer", h.MoELayers, c.Every)
	case slices.Contains(c.Windowed, true) && c.Window < 1:
		return fmt.Errorf("attention_chunk_size is %g: want a positive number", h.ChunkSize)
	}
	found := slices.Clone(c.NoRope)
	c.rotateLocal()
	if !slices.Equal(found, c.NoRope) && (c.NoRope != nil || slices.Contains(found, true)) {
		return errors.New("no_rope_layers: want rotations in all layers, or in those with chunked_attention in layer_types alone")
	}
	return nil
}
