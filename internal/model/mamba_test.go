package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model/synth"
)

// mambaShapes are those of keyShapes with layers of Mamba-2.
func mambaShapes() []synth.Shape {
	return slices.DeleteFunc(slices.Clone(keyShapes), func(s synth.Shape) bool { return s.Config().Mamba.Heads == 0 })
}

// Every field of Mamba-2 changes the logits, or is refused: by its name, or since tensors have another shape. Fields
// that say the same in other words change nothing.
func TestMambaFields(t *testing.T) {
	shaped := strings.Fields("mamba_n_heads mamba_d_head mamba_d_state mamba_d_conv shared_intermediate_size")
	for _, s := range mambaShapes() {
		f := keyFolder(t, s)
		base, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, tries := range map[string][]any{
			"mamba_n_heads": {4, 0}, "mamba_d_head": {8, 0}, "mamba_d_state": {6, 0}, "mamba_d_conv": {2, 0}, "mamba_n_groups": {1, 3},
			"shared_intermediate_size": {48}, "mamba_conv_bias": {false}, "mamba_proj_bias": {true}, "position_embedding_type": {"nope", "other"},
			"time_step_limit": {[]any{0.0, 0.1}, []any{0.01, nil}}, "layer_types": {[]string{"mamba", "conv"}, []string{"mamba"}},
			"attention_multiplier": {0.4}, "embedding_multiplier": {2}, "residual_multiplier": {0.5}, "logits_scaling": {2},
		} {
			for _, v := range tries {
				got, err := f.logits(map[string]any{name: v})
				switch {
				case err == nil && sameBits(got, base):
					t.Errorf("%s: %s = %v changes nothing", s.Name, name, v)
				case err != nil && !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "Mamba-2") &&
					!strings.Contains(err.Error(), "convolutions") && !(slices.Contains(shaped, name) || name == "mamba_n_groups"):
					t.Errorf("%s: %s = %v: %v", s.Name, name, v, err)
				}
			}
		}
		for _, same := range []map[string]any{
			{"layer_types": []string{"linear_attention", "full_attention"}}, {"time_step_limit": []any{0, nil}},
			{"time_step_limit": []any{0, map[string]any{"__float__": "Infinity"}}}, {"mamba_d_head": "auto"}, {"mamba_proj_bias": false},
			{"time_step_limit": nil},
		} {
			if got, err := f.logits(same); err != nil || !sameBits(got, base) {
				t.Errorf("%s: %v is another model: %v", s.Name, same, err)
			}
		}
	}
}

// Keys of Mamba-2 are obeyed, or refused.
func TestMambaKeys(t *testing.T) {
	for _, s := range mambaShapes() {
		f := keyFile(t, s)
		base, err := lastLogits(t, f, func(*gguf.Writer) {})
		if err != nil {
			t.Fatal(err)
		}
		for key, v := range map[string]uint32{"ssm.conv_kernel": 2, "ssm.state_size": 8, "ssm.group_count": 1, "ssm.time_step_rank": 5,
			"ssm.inner_size": 96} {
			if got, err := lastLogits(t, f, func(w *gguf.Writer) { w.Set(s.Arch+"."+key, v) }); err == nil && sameBits(got, base) {
				t.Errorf("%s: %s = %d changes nothing", s.Name, key, v)
			}
		}
	}
}
