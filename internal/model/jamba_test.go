package model_test

import (
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model/synth"
)

// Fields of Jamba's folders that would change the result are obeyed, or refused by name.
func TestJambaFields(t *testing.T) {
	for _, name := range []string{"tiny-jamba", "tiny-jamba-experts"} {
		f := latentFolder(t, name)
		base, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.logits(object{"use_mamba_kernels": false, "mamba_conv_bias": gone{}, "mamba_d_conv": gone{},
			"mamba_expand": gone{}, "expert_layer_period": gone{}, "expert_layer_offset": gone{}}); err != nil ||
			!sameBits(got, base) {
			t.Errorf("%s: transformers' defaults give other logits: %v", name, err)
		}
		for field, v := range map[string]any{"attn_layer_period": 3, "attn_layer_offset": 0, "mamba_dt_rank": "auto",
			"mamba_d_state": 16, "mamba_d_conv": 3, "mamba_expand": 3, "mamba_proj_bias": true, "mamba_conv_bias": false,
			"num_experts": 5, "expert_layer_offset": 0} {
			got, err := f.logits(object{field: v})
			dense := name == "tiny-jamba" && field == "expert_layer_offset" // without experts it means nothing
			if err == nil && sameBits(got, base) != dense {
				t.Errorf("%s: %s = %v changes nothing", name, field, v)
			}
		}
		for _, v := range []any{"some", 0, -1} {
			if _, err := f.logits(object{"mamba_dt_rank": v}); err == nil || !strings.Contains(err.Error(), "mamba_dt_rank") {
				t.Errorf("%s: mamba_dt_rank = %v is not refused by its name: %v", name, v, err)
			}
		}
	}
}

// Keys of Mamba that tensors contradict are refused.
func TestJambaKeys(t *testing.T) {
	s, err := synth.Lookup("tiny-jamba")
	if err != nil {
		t.Fatal(err)
	}
	f := keyFile(t, s)
	for _, key := range []string{"ssm.conv_kernel", "ssm.state_size", "ssm.time_step_rank", "ssm.inner_size"} {
		for _, v := range []uint32{0, 3} {
			if _, err := lastLogits(t, f, func(w *gguf.Writer) { w.Set("jamba."+key, v) }); err == nil {
				t.Errorf("%s = %d is not refused", key, v)
			}
		}
	}
}
