package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// deci is Llama 3.1 Nemotron 51B and Ultra and Llama 3.3 Nemotron Super: Llama 3 whose layers differ in key/value heads
// and in the width of their MLPs, and where some lack attention, or the MLP, or have a product in attention's place.
var deci = architecture{
	name: "deci", modelType: "nemotron-nas", class: "DeciLMForCausalLM",
	keys:     rmsKeys,
	fields:   headsField,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, IntermediateSize: 1},
	layer: slices.Concat(
		only(func(c *Config, layer int) bool { return c.attends(layer) || c.replaced(layer) }, attnNorm),
		only((*Config).hasMLP, ffnNorm),
		only((*Config).attends, query, key, value, attnOutput),
		only((*Config).replaced, part{name: "attn_output", folder: "self_attn.linear_attn", out: hidden, in: hidden}),
		only((*Config).hasMLP, ffnGate, ffnUp, ffnDown)),
	neighbours: true, square: true, varied: true,

	readKeys: func(k *keys, c *Config) {
		c.LayerKVHeads = k.each("attention.head_count_kv", c.Layers, c.Heads)
		c.LayerFFN = k.each("feed_forward_length", c.Layers)
		heads := k.each("attention.head_count", c.Layers)
		c.setLayers()
		if len(heads) > 0 {
			c.Heads = slices.Max(heads)
		}
		for i, n := range heads {
			c.Replaced[i] = n > 0 && c.Bare[i]
			if n != c.Heads && (n > 0 || !c.Bare[i]) {
				k.refuse("attention.head_count", fmt.Sprintf("gives layer %d %d heads, and others %d", i, n, c.Heads))
			}
		}
	},
	writeKeys: func(c *Config, set func(string, any)) {
		heads, widths := make([]uint32, c.Layers), make([]uint32, c.Layers)
		kv := make([]uint32, c.Layers)
		for i := range heads {
			kv[i], widths[i] = uint32(c.kvHeads(i)), uint32(c.ffn(i))
			if !c.bare(i) || c.replaced(i) {
				heads[i] = uint32(c.Heads)
			}
		}
		set("attention.head_count", heads)
		set("attention.head_count_kv", kv)
		set("feed_forward_length", widths)
		set("attention.key_length", uint32(c.HeadDim))
		set("attention.value_length", uint32(c.HeadDim))
	},
	readFields: readDeciFields, writeFields: writeDeciFields,
	check: func(c *Config) error {
		if c.LayerKVHeads == nil {
			return errors.New("layers are alike: a deci model lists the heads and the MLP of each")
		}
		return nil
	},
}

// replaced reports whether layer i has a product in attention's place.
func (c *Config) replaced(i int) bool { return i < len(c.Replaced) && c.Replaced[i] }

// hasMLP reports whether layer i has an MLP.
func (c *Config) hasMLP(i int) bool { return c.ffn(i) > 0 }

// setLayers sets what follows from the lists of layers: which have no attention, and the largest numbers.
func (c *Config) setLayers() {
	c.Bare, c.Replaced = make([]bool, max(c.Layers, 0)), make([]bool, max(c.Layers, 0))
	for i, n := range c.LayerKVHeads {
		c.Bare[i] = n == 0
	}
	if c.Layers > 0 {
		c.KVHeads, c.FFN = slices.Max(c.LayerKVHeads), slices.Max(c.LayerFFN)
	}
}

// validateByLayer checks the lists of layers.
func (c *Config) validateByLayer() error {
	if c.LayerKVHeads == nil && c.LayerFFN == nil {
		return nil
	}
	if len(c.LayerKVHeads) != c.Layers || len(c.LayerFFN) != c.Layers {
		return fmt.Errorf("heads of %d layers and MLPs of %d: want %d of both", len(c.LayerKVHeads), len(c.LayerFFN), c.Layers)
	}
	for i, n := range c.LayerKVHeads {
		switch {
		case n < 0 || n > c.Heads || n > 0 && c.Heads%n != 0:
			return fmt.Errorf("%d heads do not share the %d key/value heads of layer %d evenly", c.Heads, n, i)
		case (n == 0) != c.bare(i) || n > 0 && c.replaced(i):
			return fmt.Errorf("layer %d has %d key/value heads, and it has no attention: want one of the two", i, n)
		case c.LayerFFN[i] < 0 || c.LayerFFN[i] > maxWidth:
			return fmt.Errorf("MLP of layer %d is %d wide: want 0 to %d", i, c.LayerFFN[i], maxWidth)
		}
	}
	return nil
}

// The fields of the two halves of a layer in block_configs. GGUF files cannot express the others.
var (
	deciAttention = ggufkeys.Rules{Obeyed: strings.Fields("n_heads_in_group no_op replace_with_linear"),
		Neutral: neutral(map[string][]any{`sparsify window_length num_sink_tokens unshifted_sink mamba llama4
			use_prefill_window_in_sink_attention`: {false}})}
	deciMLP = ggufkeys.Rules{Obeyed: strings.Fields("ffn_mult intermediate_size no_op"),
		Neutral: neutral(map[string][]any{"sparsify replace_with_linear moe": {false}, "gated": {true}, "hidden_act": {"silu"}})}
)

func readDeciFields(h *hfConfig, c *Config) error {
	if len(h.Blocks) != c.Layers {
		return fmt.Errorf("block_configs lists %d layers: want %d", len(h.Blocks), c.Layers)
	}
	c.LayerKVHeads, c.LayerFFN = make([]int, c.Layers), make([]int, c.Layers)
	linear := make([]bool, c.Layers)
	for i, block := range h.Blocks {
		name := fmt.Sprintf("block_configs[%d].", i)
		attn, mlp := block["attention"], block["ffn"]
		err := errors.Join(checkObject(name+"attention.", attn, deciAttention, false),
			checkObject(name+"ffn.", mlp, deciMLP, false))
		linear[i] = attn["replace_with_linear"] == true
		group, _ := attn["n_heads_in_group"].(float64)
		times, _ := mlp["ffn_mult"].(float64)
		width, _ := mlp["intermediate_size"].(float64)
		switch {
		case attn["no_op"] == true || linear[i]:
		case group >= 1 && group == math.Trunc(group) && int(group) <= c.Heads && c.Heads%int(group) == 0:
			c.LayerKVHeads[i] = c.Heads / int(group)
		default:
			err = errors.Join(err, fmt.Errorf("%sattention.n_heads_in_group is %v: want a divisor of the %d heads", name,
				attn["n_heads_in_group"], c.Heads))
		}
		switch {
		case mlp["no_op"] == true:
		case times > 0 && times < maxWidth: // rounded up to whole 256
			c.LayerFFN[i] = (int(2*times*float64(c.Hidden)/3) + 255) / 256 * 256
		case width >= 1 && width <= maxWidth && width == math.Trunc(width):
			c.LayerFFN[i] = int(width)
		default:
			err = errors.Join(err, fmt.Errorf("%sffn.ffn_mult is %v: want a positive number", name, mlp["ffn_mult"]))
		}
		if err != nil {
			return err
		}
	}
	c.setLayers()
	c.Replaced = linear
	return nil
}

func writeDeciFields(c *Config, m map[string]any) error {
	blocks := make([]map[string]map[string]any, c.Layers)
	for i := range blocks {
		attn := map[string]any{"no_op": c.bare(i) && !c.replaced(i), "replace_with_linear": c.replaced(i),
			"n_heads_in_group": nil}
		if n := c.kvHeads(i); n > 0 {
			attn["n_heads_in_group"] = c.Heads / n
		}
		mlp := map[string]any{"no_op": !c.hasMLP(i), "replace_with_linear": false, "ffn_mult": nil}
		switch n := c.ffn(i); {
		case n%256 > 0:
			mlp["intermediate_size"] = n
			delete(mlp, "ffn_mult")
		case n > 0:
			mlp["ffn_mult"] = floating(float64(3*n) / float64(2*c.Hidden))
		}
		blocks[i] = map[string]map[string]any{"attention": attn, "ffn": mlp}
	}
	m["block_configs"] = blocks
	m["num_key_value_heads"], m["intermediate_size"] = nil, nil
	return nil
}
