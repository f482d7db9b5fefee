package model_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model/synth"
)

// mambaShapes returns the small shapes with Mamba-2 layers.
func mambaShapes() []synth.Shape {
	return slices.DeleteFunc(synth.Small(), func(s synth.Shape) bool {
		m := s.Config().Mamba
		return m.Heads == 0 || m.Rank > 0
	})
}

// Every field of Mamba-2 changes the logits or is refused: by its name, or because tensors have
// another shape. Fields that say the same in another way change nothing.
func TestMambaFields(t *testing.T) {
	granite := map[string][]any{
		"mamba_n_heads": {4, 0}, "mamba_d_head": {8, 0}, "mamba_d_state": {6, 0}, "mamba_d_conv": {2,
			0}, "mamba_n_groups": {1, 3},
		"shared_intermediate_size": {48}, "mamba_conv_bias": {false}, "mamba_proj_bias": {true},
		"position_embedding_type": {"nope", "other"},
		"time_step_limit":         {[]any{0.0, 0.1}, []any{0.01, nil}}, "layer_types": {[]string{"mamba", "conv"}, []string{"mamba"}},
		"attention_multiplier": {0.4}, "embedding_multiplier": {2}, "residual_multiplier": {0.5}, "logits_scaling": {2},
	}
	nemotron := map[string][]any{
		"mamba_num_heads": {4, 0}, "mamba_head_dim": {8, 0}, "ssm_state_size": {6, 0}, "conv_kernel": {2,
			0}, "mamba_d_conv": {2}, "n_groups": {1, 3},
		"mamba_n_groups": {1}, "use_conv_bias": {false}, "mamba_proj_bias": {true}, "mamba_dt_limit": {[]any{0.0, 0.1}},
		"layer_norm_epsilon": {0.1},
		"time_step_limit":    {[]any{0.0, 0.1}, []any{0.01, nil}}, "hybrid_override_pattern": {"M*", "MM-", "**E", "M*X"},
		"mlp_hidden_act": {"silu"}, "mamba_hidden_act": {"relu"}, "head_dim": {32},
	}
	falcon := map[string][]any{
		"mamba_n_heads": {4, 0}, "mamba_d_head": {8, 0}, "mamba_d_state": {6, 0}, "mamba_d_conv": {2, 0},
		"mamba_n_groups": {1, 3}, "mamba_d_ssm": {64, 0, nil}, "mamba_conv_bias": {false}, "mamba_proj_bias": {true},
		"projectors_bias": {true}, "mamba_rms_norm": {false}, "mamba_norm_before_gate": {true},
		"time_step_limit":      {[]any{0.0, 0.1}, []any{0.01, nil}},
		"embedding_multiplier": {2, 0}, "lm_head_multiplier": {2, -1}, "attention_in_multiplier": {0.3},
		"attention_out_multiplier": {0.3}, "key_multiplier": {2}, "ssm_in_multiplier": {2}, "ssm_out_multiplier": {2},
		"ssm_multipliers": {[]any{0.5, 2, 4, 0.125, 15}, []any{0.5}, nil}, "mlp_multipliers": {[]any{1, 1}, nil},
		"tie_word_embeddings": {true},
	}
	experts := map[string][]any{"moe_intermediate_size": {64}, "moe_shared_expert_intermediate_size": {64},
		"moe_latent_size":  {16, 0},
		"n_routed_experts": {3}, "num_experts_per_tok": {1}, "norm_topk_prob": {true}, "routed_scaling_factor": {1},
		"n_group": {4}, "topk_group": {1, 9}}
	for _, s := range mambaShapes() {
		fields := granite
		sameFields := []map[string]any{{"layer_types": []string{"linear_attention", "full_attention"}},
			{"mamba_d_head": "auto"}}
		if s.Arch == "falcon-h1" {
			fields, sameFields = falcon, sameFields[1:]
		}
		if oneHalved(s) {
			fields = nemotron
			last := "mlp"
			if s.Config().Experts > 0 {
				fields = maps.Clone(nemotron)
				maps.Copy(fields, experts)
				last = "moe"
			}
			sameFields = []map[string]any{
				{"hybrid_override_pattern": "", "layers_block_type": []string{"mamba", "attention", last}, "num_hidden_layers": gone{}},
				{"hybrid_override_pattern": gone{}, "layers_block_type": []string{"linear_attention", "full_attention", last}}}
		}
		f := keyFolder(t, s)
		base, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, tries := range fields {
			for _, v := range tries {
				got, err := f.logits(map[string]any{name: v})
				said := err != nil && slices.ContainsFunc([]string{name, "Mamba-2", "convolutions", "tensor", "experts"},
					func(word string) bool { return strings.Contains(err.Error(), word) })
				if err == nil && sameBits(got, base) || err != nil && !said {
					t.Errorf("%s: %s = %v is neither obeyed nor refused: %v", s.Name, name, v, err)
				}
			}
		}
		if _, err := f.logits(map[string]any{"mamba_n_heads": 0, "mamba_n_groups": 0, "mamba_d_state": 0, "mamba_d_head": 0,
			"mamba_d_ssm": 0, "mamba_expand": 0, "mamba_num_heads": 0, "n_groups": 0, "ssm_state_size": 0,
			"mamba_head_dim": 0}); err == nil || !strings.Contains(err.Error(), "0 heads") {
			t.Errorf("%s: without heads: %v", s.Name, err)
		}
		for _, same := range append(sameFields, map[string]any{"time_step_limit": []any{0, nil}},
			map[string]any{"time_step_limit": nil},
			map[string]any{"time_step_limit": []any{0, map[string]any{"__float__": "Infinity"}}},
			map[string]any{"mamba_proj_bias": false}) {
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
		for key, v := range map[string]uint32{"ssm.conv_kernel": 2, "ssm.state_size": 8, "ssm.group_count": 1,
			"ssm.time_step_rank": 5,
			"ssm.inner_size":     96} {
			if got, err := lastLogits(t, f, func(w *gguf.Writer) { w.Set(s.Arch+"."+key, v) }); err == nil && sameBits(got, base) {
				t.Errorf("%s: %s = %d changes nothing", s.Name, key, v)
			}
		}
		if _, err := lastLogits(t, f, func(w *gguf.Writer) {
			for _, key := range []string{"state_size", "group_count", "time_step_rank", "inner_size"} {
				w.Set(s.Arch+".ssm."+key, uint32(0))
			}
		}); err == nil || !strings.Contains(err.Error(), "0 heads") {
			t.Errorf("%s: without heads: %v", s.Name, err)
		}
	}
}

// The output matrix of a Falcon-H1 folder may be the embedding, with a separate multiplier.
func TestTiedWithMultipliers(t *testing.T) {
	s := synth.Small()[slices.IndexFunc(synth.Small(), func(s synth.Shape) bool { return s.Arch == "falcon-h1" })]
	f := keyFolder(t, s)
	from, err := safetensors.OpenFolder(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	head, _ := from.Tensor("model.embed_tokens.weight")
	head.Name = "lm_head.weight"
	want, err := f.with(head).logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.without("lm_head.weight").logits(map[string]any{"tie_word_embeddings": true})
	if err != nil || !sameBits(got, want) {
		t.Errorf("a folder with one matrix for both is another model: %v", err)
	}
}
