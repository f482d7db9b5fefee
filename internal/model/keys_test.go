package model_test

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tensor"
)

// keyFile returns an open GGUF file of a shape's model.
func keyFile(t *testing.T, s synth.Shape) *gguf.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: tensor.F32, Seed: 7}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse("m.gguf", data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// changed holds the file that lastLogits opens.
var changed bytes.Buffer

// lastLogits returns the logits after a short text, by the model in a file that change has changed.
func lastLogits(t *testing.T, f *gguf.File, change func(w *gguf.Writer)) ([]float32, error) {
	t.Helper()
	w := new(gguf.Writer)
	for key, v := range f.Meta() {
		if !strings.HasPrefix(key, "tokenizer.") { // they take longer to read than all others
			w.Set(key, v)
		}
	}
	for _, info := range f.Tensors {
		x, _ := f.Tensor(info.Name)
		w.AddTensor(x)
	}
	change(w)
	changed.Reset()
	if _, err := w.WriteTo(&changed); err != nil {
		t.Fatal(err)
	}
	m, err := model.OpenGGUF("changed.gguf", changed.Bytes(), model.Options{Threads: 1})
	if err != nil {
		if !strings.Contains(err.Error(), "changed.gguf") {
			t.Errorf("an error that does not name the file: %v", err)
		}
		return nil, err
	}
	return logitsOf(t, m), nil
}

func logitsOf(t *testing.T, m *model.Model) []float32 {
	t.Helper()
	defer m.Close()
	return read(t, m, []int32{3, 250, 17, 390, 101, 3, 42, 8})
}

// llamaCppKeys are the keys that llama.cpp knows, without the architecture's name before them.
const llamaCppKeys = `vocab_size context_length embedding_length embedding_length_out embedding_length_per_layer_input
	features_length block_count leading_dense_block_count feed_forward_length expert_feed_forward_length
	expert_shared_feed_forward_length expert_chunk_feed_forward_length swiglu_clamp_exp swiglu_clamp_shexp
	use_parallel_residual tensor_data_layout expert_count expert_used_count expert_shared_count expert_group_count
	expert_group_used_count expert_weights_scale expert_weights_norm expert_gating_func expert_group_scale
	experts_per_group moe_every_n_layers moe_latent_size nextn_predict_layers n_deepstack_layers deepstack_mapping
	hidden_activation pooling_type logit_scale decoder_start_token_id decoder_block_count attn_logit_softcapping
	router_logit_softcapping final_logit_softcapping swin_norm rescale_every_n_layers time_mix_extra_dim
	time_decay_extra_dim residual_scale embedding_scale token_shift_count interleave_moe_layer_step
	full_attention_interval num_loops skip_loop_final_norm attention.head_count attention.head_count_kv
	attention.max_alibi_bias attention.clamp_kqv attention.key_length attention.value_length
	attention.layer_norm_epsilon attention.layer_norm_rms_epsilon attention.group_norm_epsilon
	attention.group_norm_groups attention.causal attention.q_lora_rank attention.kv_lora_rank
	attention.relative_buckets_count attention.sliding_window attention.sliding_window_pattern attention.scale
	attention.output_scale attention.value_scale attention.temperature_length attention.temperature_scale
	attention.key_length_mla attention.value_length_mla attention.key_length_swa attention.value_length_swa
	attention.indexer.head_count attention.compress_ratios attention.shared_kv_layers attention.recurrent_layers
	hyper_connection.count hash_layer_count rope.dimension_count rope.dimension_count_swa rope.dimension_sections
	rope.freq_base rope.freq_base_swa rope.scale_linear rope.scaling.type rope.scaling.factor rope.scaling.alpha
	rope.scaling.attn_factor rope.scaling.original_context_length rope.scaling.finetuned
	rope.scaling.yarn_log_multiplier rope.scaling.yarn_ext_factor rope.scaling.yarn_attn_factor
	rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow ssm.conv_kernel ssm.dt_b_c_rms kda.head_dim wkv.head_size
	classifier.output_labels altup.active_idx altup.num_inputs activation_sparsity_scale target_layers target_hidden_size norm_before_residual norm_before_fc shortconv.l_cache
	dense_2_feat_in dense_3_feat_out block_size a_key_of_tomorrow`

// Every key that llama.cpp knows, if set to a value that is not neutral, is refused by name,
// changes the logits, or is one of the few that cannot.
func TestKeysAreObeyedOrRefused(t *testing.T) {
	inert := strings.Fields(`vocab_size context_length tensor_data_layout attention.sliding_window_pattern
		rope.scaling.original_context_length rope.scaling.finetuned rope.scaling.yarn_beta_fast
		rope.scaling.yarn_beta_slow rope.scaling.yarn_log_multiplier rope.scaling.yarn_attn_factor`) // the last five: without yarn
	structural := strings.Fields(`embedding_length block_count feed_forward_length attention.head_count
		attention.head_count_kv attention.key_length expert_count expert_feed_forward_length
		embedding_length_per_layer_input expert_shared_count expert_shared_feed_forward_length ssm.conv_kernel
		moe_latent_size altup.num_inputs interleave_moe_layer_step
		attention.kv_lora_rank attention.q_lora_rank attention.value_length_mla attention.key_length_mla`)
	values := map[string][]any{
		"context_length": {uint32(33)}, "attention.causal": {false},
		"attention.sliding_window_pattern": {[]bool{false, true}}, "rope.scaling.type": {"su"},
		"rope.scaling.original_context_length": {uint32(16)},
		"rope.dimension_sections":              {[]int32{8, 8, 0, 0}}, "rope.scaling.finetuned": {false},
		"hidden_activation": {"relu"}, "swin_norm": {true},
		"expert_weights_norm": {true}, "classifier.output_labels": {[]string{"yes", "no"}},
		"tensor_data_layout":    {"Meta AI original pth"},
		"use_parallel_residual": {false}, "skip_loop_final_norm": {true},
		"attention.recurrent_layers": {[]bool{true, false}},
		"attention.head_count_kv":    {uint32(4), []uint32{1, 2}}, "attention.head_count": {uint32(4), []uint32{2, 4}},
		"feed_forward_length":      {uint32(64), []uint32{96, 64}},
		"attention.sliding_window": {uint32(5)}, "rope.dimension_count": {uint32(8)}, "rope.freq_base": {float32(500)},
		"block_count":                  {uint32(1), uint32(3)},
		"attention.layer_norm_epsilon": {float32(0.1)}, "attention.layer_norm_rms_epsilon": {float32(0.1)},
		"embedding_length":     {uint32(32)},
		"attention.key_length": {uint32(16)}, "attention.value_length": {uint32(16)},
		"rope.scaling.factor": {float32(4)}, "rope.scale_linear": {float32(4)},
		"expert_used_count": {uint32(1), uint32(7)}, "attention.clamp_kqv": {float32(0.37)},
	}
	for _, s := range synth.Small() {
		f := keyFile(t, s)
		base, err := lastLogits(t, f, func(*gguf.Writer) {})
		if err != nil {
			t.Fatal(err)
		}
		want := expectationsOf(s)
		here := append(slices.Clone(inert), strings.Fields(want.inertKeys)...)
		idle := map[string][]any{}
		for _, name := range strings.Fields(llamaCppKeys) {
			tries := values[name]
			if tries == nil {
				tries = []any{uint32(7), float32(0.37)}
			}
			if slices.Contains(here, name) && !want.obeys(name) {
				idle[s.Arch+"."+name] = tries
				continue
			}
			for _, v := range tries {
				key := s.Arch + "." + name
				got, err := lastLogits(t, f, func(w *gguf.Writer) {
					w.Set(key, v)
					if name == "attention.temperature_scale" { // the length of its steps
						w.Set(s.Arch+".rope.scaling.original_context_length", uint32(4))
					}
				})
				refused := err != nil && strings.Contains(err.Error(), key)
				if err == nil && slices.Contains(strings.Fields(want.looseKeys), name) {
					continue
				}
				if oneHalved(s) && (name == "block_count" && v == uint32(3) || name == "rope.scaling.type") {
					continue
				}
				contradicted := append(strings.Fields(want.structural), structural...) // by tensors
				unfit := err != nil && slices.Contains(contradicted, name)
				same := err == nil && sameBits(got, base)
				if !refused && !unfit && (err != nil || same) {
					t.Errorf("%s = %v is neither obeyed nor refused by its name: %v", key, v, err)
				}
			}
		}
		changeNothing(t, s.Arch, idle, func(keys map[string]any) (bool, error) {
			got, err := lastLogits(t, f, func(w *gguf.Writer) {
				for key, v := range keys {
					w.Set(key, v)
				}
			})
			return same(got, err, base), err
		})
	}
}

// Neutral values of keys that grove does not obey change nothing: converters write them.
func TestNeutralKeys(t *testing.T) {
	for _, s := range synth.Small() {
		f := keyFile(t, s)
		base, err := lastLogits(t, f, func(*gguf.Writer) {})
		if err != nil {
			t.Fatal(err)
		}
		got, err := lastLogits(t, f, func(w *gguf.Writer) {
			for name, v := range map[string]any{
				"attention.causal": true, "expert_count": uint32(0), "expert_used_count": uint32(0),
				"pooling_type": uint32(0), "logit_scale": float32(0),
				"residual_scale": float32(1), "embedding_scale": float32(1), "attention.scale": float32(0),
				"attention.clamp_kqv":      float32(0),
				"attention.max_alibi_bias": float32(0), "nextn_predict_layers": uint32(0),
				"rope.scaling.attn_factor": float32(1),
				"rope.dimension_sections":  []int32{0, 0, 0, 0}, "final_logit_softcapping": float32(0),
				"attention.sliding_window":     uint32(64),
				"rope.scaling.yarn_ext_factor": float32(-1), "rope.scaling.type": "none",
				"rope.scaling.factor": float32(8),
			} {
				if !expectationsOf(s).obeys(name) {
					w.Set(s.Arch+"."+name, v)
				}
			}
		})
		if err != nil || !sameBits(got, base) {
			t.Errorf("%s: %v", s.Arch, err)
		}
	}
}

// Every key of YaRN changes the logits.
func TestYarnKeysAreObeyed(t *testing.T) {
	for _, s := range synth.Small() {
		if still(s) || s.Arch == "minicpm3" { // it does not rotate positions in, or has no YaRN
			continue
		}
		f := keyFile(t, s)
		logits := func(more map[string]any) []float32 {
			t.Helper()
			got, err := lastLogits(t, f, func(w *gguf.Writer) {
				w.Set(s.Arch+".rope.scaling.type", "yarn")
				w.Set(s.Arch+".rope.scaling.factor", float32(4))
				if s.Config().Latent.Rank > 0 { // it requires the key
					w.Set(s.Arch+".rope.scaling.yarn_log_multiplier", float32(0.1))
				}
				for key, v := range more {
					w.Set(s.Arch+".rope.scaling."+key, v)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		linear, err := lastLogits(t, f, func(w *gguf.Writer) { w.Set(s.Arch+".rope.scaling.factor", float32(4)) })
		if err != nil {
			t.Fatal(err)
		}
		base := logits(nil)
		if sameBits(base, linear) {
			t.Errorf("%s: yarn is linear scaling", s.Arch)
		}
		for key, v := range map[string]any{"original_context_length": uint32(8), "yarn_beta_fast": float32(2),
			"yarn_beta_slow": float32(0.125), "yarn_log_multiplier": float32(0.5), "attn_factor": float32(2),
			"yarn_attn_factor": float32(2)} {
			if sameBits(logits(map[string]any{key: v}), base) {
				t.Errorf("%s: rope.scaling.%s = %v changes nothing", s.Arch, key, v)
			}
		}
		if s.Config().Latent.Rank > 0 { // its usual factor is 1
			continue
		}
		// llama.cpp's converter writes config.json's attention_factor, as in OLMo 3: the usual one changes nothing.
		usual := 1 + math.Log(4)/10
		if !sameBits(logits(map[string]any{"yarn_attn_factor": usual}), base) {
			t.Errorf("%s: rope.scaling.yarn_attn_factor = %g is not YaRN's own factor", s.Arch, usual)
		}
		// Nor does the same number in attn_factor, where early files of OLMo 3 have it.
		if !sameBits(logits(map[string]any{"attn_factor": float32(usual)}), base) {
			t.Errorf("%s: rope.scaling.attn_factor = %g is applied beside YaRN's own factor", s.Arch, usual)
		}
		twice := map[string]any{"yarn_attn_factor": 2 * usual, "yarn_log_multiplier": float32(0.5)}
		if !sameBits(logits(twice), logits(map[string]any{"attn_factor": float32(2)})) {
			t.Errorf("%s: rope.scaling.yarn_attn_factor is not the whole factor", s.Arch)
		}
		// A number below 1 was attn_factor, as in DeepSeek-R1-0528-Qwen3-8B.
		part := map[string]any{"yarn_attn_factor": float32(0.75)}
		if !sameBits(logits(part), logits(map[string]any{"attn_factor": float32(0.75)})) {
			t.Errorf("%s: rope.scaling.yarn_attn_factor below 1 does not multiply YaRN's own factor", s.Arch)
		}
	}
}

// The different ways of files to express linear scaling are equivalent, as in llama.cpp.
func TestLinearScalingInEveryForm(t *testing.T) {
	for _, s := range synth.Small() {
		if still(s) { // it does not rotate positions in
			continue
		}
		f := keyFile(t, s)
		logits := func(keys map[string]any) []float32 {
			t.Helper()
			got, err := lastLogits(t, f, func(w *gguf.Writer) {
				for key, v := range keys {
					w.Set(s.Arch+".rope."+key, v)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		base := logits(nil)
		linear := logits(map[string]any{"scaling.type": "linear", "scaling.factor": float32(4)})
		if sameBits(base, linear) {
			t.Errorf("%s: linear scaling changes nothing", s.Arch)
		}
		for i, keys := range []map[string]any{
			{"scaling.factor": float32(4)}, {"scale_linear": float32(4)},
			{"scaling.factor": float32(4), "scale_linear": float32(9)},
			{"scaling.type": "linear", "scale_linear": float32(4)},
		} {
			if !sameBits(logits(keys), linear) {
				t.Errorf("%s: form %d, %v, is not linear scaling by 4", s.Arch, i, keys)
			}
		}
		for i, keys := range []map[string]any{
			{"scaling.factor": float32(0)}, {"scaling.type": "linear"},
			{"scaling.type": "linear", "scaling.factor": float32(0), "scale_linear": float32(4)},
			{"scaling.type": "none", "scaling.factor": float32(4)},
			{"scaling.type": "none", "scale_linear": float32(4)},
		} {
			if !sameBits(logits(keys), base) {
				t.Errorf("%s: form %d, %v, is not none", s.Arch, i, keys)
			}
		}
	}
}

// Tensors that llama.cpp or some other engine may know, if added to a file, are refused
// by name or change the logits.
func TestTensorsAreObeyedOrRefused(t *testing.T) {
	stems := strings.Fields(`token_embd output_norm output rope_freqs rope_factors_long rope_factors_short
		token_embd_norm position_embd token_types cls cls.output output_hc_fn per_layer_token_embd fc d2t markov_w1
		blk.2.attn_q blk.0.attn_norm blk.0.attn_q blk.0.attn_k blk.0.attn_v blk.1.attn_output blk.0.attn_rot_embd
		blk.0.ffn_gate_inp blk.0.ffn_norm blk.0.ffn_gate blk.1.ffn_down blk.0.ffn_up blk.0.ffn_gate_exps
		blk.0.post_attention_norm blk.1.attn_q_norm blk.0.attn_k_norm blk.0.attn_gate blk.0.post_ffw_norm
		blk.0.ffn_up_shexp blk.0.attn_norm_2 blk.0.attn_qkv blk.0.layer_output_norm blk.0.layer_output_scale
		blk.0.attn_sinks blk.0.attn_sub_norm blk.0.ffn_sub_norm blk.0.nextn.eh_proj`)
	for _, s := range synth.Small() {
		f, rng := keyFile(t, s), rand.New(rand.NewPCG(1, 2))
		base, err := lastLogits(t, f, func(*gguf.Writer) {})
		if err != nil {
			t.Fatal(err)
		}
		try := func(name string) (obeyed bool, err error) {
			shape := []int{s.RopeDims / 2}
			if stem, ok := strings.CutSuffix(name, ".bias"); ok { // of the required size
				if x, ok := f.Tensor(stem + ".weight"); ok {
					shape = x.Shape[:1]
				} else if x, ok := f.Tensor("token_embd.weight"); ok && stem == "output" {
					shape = x.Shape[:1]
				}
			} else if name == "output.weight" {
				shape = []int{s.Vocab, s.Hidden}
			}
			values := make([]float32, product(shape))
			for i := range values {
				values[i] = 0.5 + rng.Float32()
			}
			x, err := tensor.FromFloat32s(name, tensor.F32, shape, values)
			if err != nil {
				t.Fatal(err)
			}
			got, err := lastLogits(t, f, func(w *gguf.Writer) { w.AddTensor(x) })
			return err == nil && !sameBits(got, base), err
		}
		var obeyed []string
		for _, stem := range stems {
			for _, ending := range []string{".weight", ".bias", ".scale", ".input_scale"} {
				name := stem + ending
				if _, ok := f.Tensor(name); ok {
					continue
				}
				changed, err := try(name)
				switch {
				case name == "rope_freqs.weight" && still(s): // it does not rotate positions in
				case changed:
					obeyed = append(obeyed, name)
				case err == nil || !strings.Contains(err.Error(), name):
					t.Errorf("%s: tensor %s is neither obeyed nor refused by its name: %v", s.Arch, name, err)
				}
			}
		}
		want := expectationsOf(s).tensors
		if got := strings.Join(obeyed, " "); got != want {
			t.Errorf("%s obeys %s, want %s", s.Arch, got, want)
		}
		cases.Check(t, 8, func(t *rapid.T) {
			name := rapid.StringMatching(`(blk\.[0-3]\.)?[a-z_]{1,20}\.(weight|bias|scale)`).Draw(t, "name")
			if _, ok := f.Tensor(name); ok || strings.HasSuffix(name, ".bias") || name == "output.weight" ||
				name == "rope_freqs.weight" {
				t.Skip("one that models have")
			}
			if _, err := try(name); err == nil || !strings.Contains(err.Error(), name) {
				t.Fatalf("tensor %s: %v", name, err)
			}
		})
	}
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Opening a file that is not a model says so.
func TestOtherFilesAreRefused(t *testing.T) {
	f := keyFile(t, synth.Small()[0])
	for key, v := range map[string]any{"general.type": "adapter", "general.architecture": "mamba"} {
		if _, err := lastLogits(t, f, func(w *gguf.Writer) { w.Set(key, v) }); err == nil ||
			!strings.Contains(err.Error(), key) {
			t.Errorf("%s = %v: %v", key, v, err)
		}
	}
}
