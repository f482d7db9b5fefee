package model_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/model"
)

// Layers of Llama Nemotron's folders have the heads and widths of block_configs; what no published model has is refused
// by name.
func TestDeciBlocks(t *testing.T) {
	f := latentFolder(t, "tiny-deci")
	base, err := f.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	original := f.fields["block_configs"].([]any)
	// change returns the list with one field of the first layer changed.
	change := func(half, field string, v any) object {
		first := maps.Clone(original[0].(object))
		first[half] = maps.Clone(first[half].(object))
		first[half].(object)[field] = v
		return object{"block_configs": append([]any{first}, original[1:]...)}
	}
	for _, c := range []struct {
		half, field string
		neutral     any
		refused     []any
	}{
		{"attention", "window_length", nil, []any{64}},
		{"attention", "num_sink_tokens", nil, []any{4}},
		{"attention", "unshifted_sink", false, []any{true}},
		{"attention", "use_prefill_window_in_sink_attention", false, []any{true}},
		{"attention", "sparsify", nil, []any{[]string{"q"}}},
		{"attention", "mamba", nil, []any{object{"state_dim": 8}}},
		{"attention", "n_heads_in_group", 3, []any{4, 7, 0, -1, 1.5, nil, "3"}},
		{"attention", "other", nil, []any{1}},
		{"ffn", "replace_with_linear", false, []any{true}},
		{"ffn", "moe", nil, []any{object{"num_local_experts": 8}}},
		{"ffn", "hidden_act", "silu", []any{"gelu"}},
		{"ffn", "gated", true, []any{false}},
		{"ffn", "ffn_mult", 4.0, []any{-1, nil, "4", 1e30}},
	} {
		if c.field != "other" {
			if got, err := f.logits(change(c.half, c.field, c.neutral)); err != nil || !sameBits(got, base) {
				t.Errorf("%s = %v changes the logits: %v", c.field, c.neutral, err)
			}
		}
		for _, v := range c.refused {
			if _, err := f.logits(change(c.half, c.field, v)); err == nil || !strings.Contains(err.Error(), c.field) {
				t.Errorf("%s = %v is not refused by its name: %v", c.field, v, err)
			}
		}
	}
	_, err = f.logits(object{"block_configs": original[1:]})
	if err == nil || !strings.Contains(err.Error(), "block_configs") {
		t.Errorf("a layer too few is not refused: %v", err)
	}
}

// Nemotron Super's first block has 8 key/value heads, and an MLP of 14,336.
func TestDeciWidths(t *testing.T) {
	c, err := model.ParseFolder([]byte(`{"model_type": "nemotron-nas", "hidden_size": 8192, "num_hidden_layers": 2,
		"num_attention_heads": 64, "num_key_value_heads": null, "intermediate_size": null, "vocab_size": 128256,
		"max_position_embeddings": 131072, "block_configs": [
		{"attention": {"n_heads_in_group": 8, "no_op": false}, "ffn": {"ffn_mult": 2.625, "no_op": false}},
		{"attention": {"n_heads_in_group": null, "no_op": true}, "ffn": {"ffn_mult": 1.3125, "no_op": false}}]}`), new(struct{}))
	if err != nil || c.KVHeads != 8 || c.LayerFFN[0] != 14336 || c.LayerFFN[1] != 7168 || !c.Bare[1] {
		t.Errorf("heads %v and widths %v: %v", c.LayerKVHeads, c.LayerFFN, err)
	}
}
