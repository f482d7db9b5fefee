package model_test

import (
	"strings"
	"testing"
)

// Folders give windows, rotations and dense layers as published, as transformers writes them, or both. Layers that
// draft are left unused; fields that would change the result are obeyed, or refused by name.
func TestMiMo2Fields(t *testing.T) {
	f := latentFolder(t, "tiny-mimo2")
	base, err := f.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	const layer = "model.mtp.layers.0."
	if got, err := f.with(filled(t, layer+"eh_proj.weight", 1, 4, 8)).logits(nil); err != nil || !sameBits(got, base) {
		t.Errorf("a layer that drafts gives other logits: %v", err)
	}
	for _, change := range []object{
		{"layer_types": gone{}, "rope_parameters": gone{}, "mlp_layer_types": gone{}, "n_shared_experts": nil,
			"routed_scaling_factor": nil, "sliding_window_size": 70},
		{"hybrid_layer_pattern": gone{}, "moe_layer_freq": gone{}, "swa_rope_theta": gone{}, "rope_theta": gone{},
			"partial_rotary_factor": gone{}, "layernorm_epsilon": gone{}, "swa_num_key_value_heads": gone{},
			"swa_head_dim": gone{}, "swa_v_head_dim": gone{}, "swa_num_attention_heads": gone{}},
	} {
		if got, err := f.logits(change); err != nil || !sameBits(got, base) {
			t.Errorf("%v: other logits: %v", change, err)
		}
	}
	for field, v := range map[string]any{"attention_value_scale": nil, "swa_rope_theta": 500, "n_shared_experts": 1,
		"layernorm_epsilon": 0.1, "swa_head_dim": 32, "swa_v_head_dim": 16, "swa_num_attention_heads": 4,
		"add_swa_attention_sink_bias": false, "add_full_attention_sink_bias": true, "topk_method": "greedy",
		"scoring_func": "softmax", "norm_topk_prob": false, "routed_scaling_factor": 2, "n_group": 2,
		"hybrid_layer_pattern": []int{0, 1, 1, 1, 1}} {
		got, err := f.logits(object{field: v})
		switch {
		case err == nil && sameBits(got, base):
			t.Errorf("%s = %v changes nothing", field, v)
		case err != nil && !strings.Contains(err.Error(), field) && field != "norm_topk_prob":
			t.Errorf("%s = %v is not refused by its name: %v", field, v, err)
		}
	}
}
