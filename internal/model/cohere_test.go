package model_test

import (
	"strings"
	"testing"
)

// Fields of Command A+'s folders that would change the result are obeyed, or refused by name. Without layer_types,
// sliding_window_pattern says which layers have a window, as in transformers.
func TestCohereMoEFields(t *testing.T) {
	f := latentFolder(t, "tiny-cohere2moe")
	base, err := f.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	types := []string{"dense", "sparse", "sparse", "sparse", "sparse", "sparse"}
	for _, same := range []object{{"layer_types": gone{}}, {"mlp_layer_types": types, "first_k_dense_replace": gone{}},
		{"rms_norm_eps": nil, "prefix_dense_sliding_window_pattern": 1}, {"num_nextn_predict_layers": 1}} {
		if got, err := f.logits(same); err != nil || !sameBits(got, base) {
			t.Errorf("%v changes the logits: %v", same, err)
		}
	}
	for _, other := range []object{{"norm_topk_prob": false}, {"layer_types": gone{}, "sliding_window_pattern": 2}} {
		if got, err := f.logits(other); err != nil || sameBits(got, base) {
			t.Errorf("%v changes nothing: %v", other, err)
		}
	}
	for field, v := range map[string]any{"expert_selection_fn": "softmax", "shared_expert_combination_strategy": "sum",
		"rms_norm_eps": 1e-5, "prefix_dense_sliding_window_pattern": 4, "first_k_dense_replace": 7, "num_shared_experts": -1,
		"mlp_layer_types": types[1:]} {
		if _, err := f.logits(object{field: v}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s = %v is not refused by its name: %v", field, v, err)
		}
	}
}
