package model_test

import (
	"strings"
	"testing"
)

// Folders give heads, rotations and dense layers as published, as transformers writes them, or both. Layers that draft
// are left unused; fields that would change the result are obeyed, or refused by name.
func TestStep35Fields(t *testing.T) {
	f := latentFolder(t, "tiny-step35")
	base, err := f.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	full := object{"rope_type": "llama3", "factor": 2, "low_freq_factor": 1, "high_freq_factor": 32,
		"original_max_position_embeddings": 128, "rope_theta": 5e6, "partial_rotary_factor": 0.5}
	local := object{"rope_type": "default", "rope_theta": 1e4}
	kinds := []string{"full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"}
	drafting := f.with(filled(t, "model.layers.5.eh_proj.weight", 1, 4, 8))
	for _, x := range []struct {
		f      *folder
		change object
	}{
		{drafting, object{"num_nextn_predict_layers": 1, "layer_types": append(kinds, "sliding_attention"),
			"swiglu_limits": []any{0, nil, 0, 0, 1, 0}, "moe_layers_enum": "1,2,3,4,5",
			"rope_theta": []any{5e6, 1e4, 1e4, 1e4, 5e6, 1e4}, "partial_rotary_factors": []any{0.5, 1, 1, 1, 0.5, 1}}},
		{f, object{"moe_layers_enum": []int{1, 2, 3, 4}, "use_rope_layers": []int{}, "zero_centered": true, "sink": false}},
		{f, object{"moe_layers_enum": gone{}, "attention_other_setting": gone{}, "num_attention_groups": gone{},
			"moe_top_k": gone{}, "rope_theta": gone{}, "partial_rotary_factors": gone{}, "rope_scaling": gone{},
			"mlp_layer_types":             []string{"dense", "sparse", "sparse", "sparse", "sparse"},
			"num_sliding_attention_heads": 6, "num_key_value_heads": 2, "num_experts_per_tok": 3,
			"rope_parameters": object{"full_attention": full, "sliding_attention": local}}},
	} {
		if got, err := x.f.logits(x.change); err != nil || !sameBits(got, base) {
			t.Errorf("%v: other logits: %v", x.change, err)
		}
	}
	for field, v := range map[string]any{"swiglu_limits": nil, "swiglu_limits_shared": []float64{0, 0, 0, 0, 0.1},
		"moe_router_scaling_factor": 2, "moe_router_activation": "softmax", "rope_theta": []float64{1, 2, 3, 4, 5},
		"yarn_only_types": []string{"sliding_attention"}, "rope_scaling": nil, "moe_layers_enum": "1,3,4",
		"partial_rotary_factors":  []float64{1, 1, 1, 1, 1},
		"attention_other_setting": object{"num_attention_heads": 6, "num_attention_groups": 1},
		"query_pre_attn_scalar":   16, "gating": "per-element", "layer_types": nil,
		"use_rope_layers": []bool{true, false, true, true, true}, "sink": true, "num_attention_groups": 1} {
		got, err := f.logits(object{field: v})
		switch {
		case err == nil && sameBits(got, base):
			t.Errorf("%s = %v changes nothing", field, v)
		case err != nil && !strings.Contains(err.Error(), field) && field != "layer_types" && field != "num_attention_groups":
			t.Errorf("%s = %v is not refused by its name: %v", field, v, err)
		}
	}
}
