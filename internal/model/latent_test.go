package model_test

import (
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
)

// latentFolder writes a folder of a tiny shape with latent attention.
func latentFolder(t *testing.T, name string) *folder {
	t.Helper()
	s, err := synth.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return keyFolder(t, s)
}

// A cache of latent attention holds a latent vector and a rotated key per row, and nothing else.
func TestLatentCache(t *testing.T) {
	f := latentFolder(t, "tiny-glm4lite")
	m, err := model.Open(f.dir, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got, want := m.NewCache().Pages().RowBytes(), 4*4*(64+16); got != want {
		t.Errorf("a row takes %d bytes: want %d, 80 numbers in each of 4 layers", got, want)
	}
}

// GLM-4.7-Flash's folders are like DeepSeek-V3's except for names in config.json, and may list which layers are dense.
func TestGLM4Lite(t *testing.T) {
	f := latentFolder(t, "tiny-glm4lite")
	base, err := f.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	lite := object{"model_type": "glm4_moe_lite", "scoring_func": gone{}, "topk_method": gone{}, "rope_interleave": true}
	for _, dense := range []object{{}, {"first_k_dense_replace": gone{}},
		{"mlp_layer_types": []string{"dense", "sparse", "sparse", "sparse"}}} {
		for name, v := range lite {
			dense[name] = v
		}
		if got, err := f.logits(dense); err != nil || !sameBits(got, base) {
			t.Errorf("%v: other logits: %v", dense, err)
		}
	}
}

// Fields that would change the result are obeyed or refused by name.
func TestLatentFields(t *testing.T) {
	for _, name := range []string{"tiny-glm4lite", "tiny-deepseek2"} {
		f := latentFolder(t, name)
		base, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		for field, v := range map[string]any{"kv_lora_rank": 16, "q_lora_rank": 48, "qk_nope_head_dim": 16,
			"qk_rope_head_dim": 8, "v_head_dim": 16,
			"scoring_func": "tanh", "topk_method": "random", "rope_interleave": false,
			"norm_topk_prob":        f.fields["norm_topk_prob"] == false,
			"routed_scaling_factor": 3.5, "first_k_dense_replace": 2, "moe_layer_freq": 2, "n_group": 2,
			"mlp_layer_types": []string{"sparse", "dense", "sparse", "sparse"}, "partial_rotary_factor": 0.5,
			"rope_scaling": object{"rope_type": "yarn", "factor": 4, "mscale": 1, "mscale_all_dim": 0.5}} {
			if got, err := f.logits(object{field: v}); err == nil && sameBits(got, base) {
				t.Errorf("%s: %s = %v changes nothing", name, field, v)
			}
		}
		for field, word := range map[string]string{"scoring_func": "scoring_func", "topk_method": "topk_method"} {
			if _, err := f.logits(object{field: "random"}); err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %s is not refused by its name: %v", name, field, err)
			}
		}
	}
}
