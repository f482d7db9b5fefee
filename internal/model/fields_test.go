package model_test

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// folder is a Hugging Face folder of a shape's model.
type folder struct {
	t      *testing.T
	dir    string
	fields map[string]any
}

func keyFolder(t *testing.T, s synth.Shape) *folder {
	t.Helper()
	f := &folder{t: t, dir: t.TempDir()}
	if err := synth.WriteHF(context.Background(), f.dir, s, synth.Options{Type: tensor.F32, Seed: 7}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(f.dir, "config.json"))
	if err == nil {
		err = os.Remove(filepath.Join(f.dir, "tokenizer.json")) // it takes longer to read than everything else
	}
	if err == nil {
		err = json.Unmarshal(data, &f.fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// gone stands for the value of a field that is left out.
type gone struct{}

// logits returns the logits of the folder's model with fields changed.
func (f *folder) logits(change map[string]any) ([]float32, error) {
	f.t.Helper()
	fields := maps.Clone(f.fields)
	for name, v := range change {
		fields[name] = v
		if v == (gone{}) {
			delete(fields, name)
		}
	}
	path := filepath.Join(f.dir, "config.json")
	data, err := json.Marshal(fields)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err == nil {
		old := time.Now().Add(-time.Hour) // opening a file that was just written involves a wait
		err = os.Chtimes(path, old, old)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	m, err := model.Open(f.dir, model.Options{Threads: 1})
	if err != nil {
		if !strings.Contains(err.Error(), f.dir) {
			f.t.Errorf("an error that does not name the folder: %v", err)
		}
		return nil, err
	}
	return logitsOf(f.t, m), nil
}

// with writes a folder that has the same tensors, except that some are added or replaced.
func (f *folder) with(add ...tensor.Tensor) *folder { return f.changed("", add...) }

// without writes a folder that lacks the tensors whose names end so.
func (f *folder) without(ending string) *folder { return f.changed(ending) }

func (f *folder) changed(drop string, add ...tensor.Tensor) *folder {
	f.t.Helper()
	to := &folder{t: f.t, dir: f.t.TempDir(), fields: f.fields}
	from, err := safetensors.OpenFolder(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	defer from.Close()
	w := safetensors.NewWriter()
	for _, info := range from.Tensors {
		if x, _ := from.Tensor(info.Name); (drop == "" || !strings.HasSuffix(x.Name, drop)) && !slices.ContainsFunc(add,
			func(y tensor.Tensor) bool { return y.Name == x.Name }) {
			w.AddTensor(x)
		}
	}
	for _, x := range add {
		w.AddTensor(x)
	}
	if err := w.WriteFile(filepath.Join(to.dir, "model.safetensors")); err != nil {
		f.t.Fatal(err)
	}
	return to
}

// filled returns a tensor whose elements all have one value.
func filled(t *testing.T, name string, value float32, shape ...int) tensor.Tensor {
	t.Helper()
	x, err := tensor.FromFloat32s(name, tensor.F32, shape, slices.Repeat([]float32{value}, product(shape)))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

type object = map[string]any

// Every field that transformers reads for these models, if set to a value that is not neutral, is
// refused by name, changes the logits, or is one of the few that cannot.
func TestFieldsAreObeyedOrRefused(t *testing.T) {
	inert := strings.Fields(`_name_or_path architectures transformers_version torch_dtype dtype use_cache
		initializer_range pad_token_id bos_token_id pretraining_tp attention_dropout hidden_dropout classifier_dropout
		is_decoder max_window_layers sliding_window`)
	values := map[string][]any{
		"model_type": {"mamba", gone{}}, "vocab_size": {401, gone{}}, "hidden_size": {32, gone{}},
		"intermediate_size": {64, gone{}},
		"num_hidden_layers": {1, 3, gone{}}, "num_attention_heads": {4, gone{}}, "max_position_embeddings": {0, gone{}},
		"head_dim":   {16},
		"hidden_act": {"tanh", "quick_gelu"}, "tie_word_embeddings": {"swap"}, "num_key_value_heads": {4},
		"rms_norm_eps": {0.1}, "layer_norm_eps": {0.1}, "rope_theta": {500}, "use_parallel_residual": {false},
		"rope_scaling": {
			object{"type": "linear", "factor": 4}, object{"rope_type": "yarn", "factor": 4},
			object{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "truncate": false},
			object{"rope_type": "dynamic", "factor": 4}, object{"factor": 4},
			object{"rope_type": "longrope", "short_factor": []int{1}},
			object{"type": "mrope", "mrope_section": []int{8, 8}}, object{"rope_type": "default", "factor": 4},
			object{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
				"original_max_position_embeddings": 16},
			object{"rope_type": "default", "mrope_section": []int{8, 8}},
			object{"rope_type": "linear", "factor": 1, "attention_factor": 2},
			object{"rope_type": "linear", "factor": 1, "attn_factor": 2},
			object{"rope_type": "longrope", "short_factor": []int{1}, "attn_factor": 2},
		},
		"rope_parameters": {
			object{"rope_type": "default", "rope_theta": 500},
			object{"rope_type": "default", "partial_rotary_factor": 0.25},
			object{"full_attention": object{"rope_type": "default"},
				"sliding_attention": object{"rope_type": "linear"}},
		},
		"partial_rotary_factor": {0.25}, "rotary_pct": {0.25}, "rotary_emb_base": {500},
		"use_sliding_window": {true}, "layer_types": {[]string{"full_attention", "sliding_attention"},
			[]string{"linear_attention", "full_attention"}},
		"quantization_config": {object{"quant_method": "awq"}}, "compression_config": {object{"format": "int"}},
		"is_encoder_decoder":  {true},
		"add_cross_attention": {true}, "pruned_heads": {object{"0": []int{1}}}, "is_causal": {false},
		"use_bidirectional_attention": {true},
		"num_experts":                 {4}, "num_local_experts": {4}, "attn_logit_softcapping": {20}, "final_logit_softcapping": {20},
		"logits_scaling":       {2},
		"embedding_multiplier": {2}, "residual_multiplier": {0.5}, "attention_multiplier": {0.1}, "logit_scale": {0.5},
		"swiglu_alpha": {1.5}, "swiglu_limit": {5}, "alibi": {true}, "clip_qkv": {0.5},
		"architectures": {[]string{"LlamaModel"}}, "attention_dropout": {0.5}, "hidden_dropout": {0.5},
		"classifier_dropout": {0.5},
	}
	// Models that do not rotate positions in, and list kinds of layers in another way, do not read these.
	unread := strings.Fields(`layer_types max_position_embeddings num_hidden_layers partial_rotary_factor rms_norm_eps rope_parameters rope_scaling
		rope_theta use_sliding_window intermediate_size`)
	structural := strings.Fields(`vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads
		num_key_value_heads head_dim tie_word_embeddings num_experts num_local_experts`)
	for _, s := range synth.Small() {
		f, want := keyFolder(t, s), expectationsOf(s)
		base, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		windowed := func(name string) bool { return name == "sliding_window" && want.window }
		idle := map[string][]any{}
		for _, name := range append(inert, slices.Sorted(maps.Keys(values))...) {
			tries := values[name]
			if tries == nil {
				tries = []any{7}
			}
			either := still(s) && slices.Contains(unread, name) || // changes nothing, or is refused
				s.Arch == "gemma3" && name == "max_position_embeddings" // has a default
			foreign := slices.Contains(strings.Fields(want.foreign), name)
			if (foreign || slices.Contains(inert, name)) && !windowed(name) && !either {
				idle[name] = tries
				continue
			}
			for _, v := range tries {
				if v == "swap" {
					v = !s.Tied
				}
				got, err := f.logits(map[string]any{name: v})
				refused := err != nil && strings.Contains(err.Error(), name)
				if o, ok := v.(object); ok && err != nil {
					refused = refused || slices.ContainsFunc(slices.Collect(maps.Keys(o)),
						func(field string) bool { return strings.Contains(err.Error(), field) })
				}
				if slices.Contains([]string{"gemma4", "kimi-linear", "mimo2"}, s.Arch) && name == "layer_types" {
					refused = err != nil // tensors of the kinds of layers have different sizes
				}
				if either && (same(got, err, base) || refused) {
					continue
				}
				if o, ok := v.(object); ok && s.Arch == "internlm2" && o["rope_type"] == "dynamic" {
					continue // changes nothing within the context
				}
				if s.Arch == "granitehybrid" && (name == "layer_types" || name == "intermediate_size" && v != gone{}) {
					continue // see TestMambaFields; without experts, shared_intermediate_size is the width
				}
				same := same(got, err, base)
				switch {
				case windowed(name):
					if same {
						t.Errorf("%s: %s = %v changes nothing", s.Arch, name, v)
					}
				case !refused && (err == nil || !slices.Contains(structural, name)) && (err != nil || same):
					t.Errorf("%s: %s = %v is neither obeyed nor refused by its name: %v", s.Arch, name, v, err)
				}
			}
		}
		unchanged := func(fields map[string]any) (bool, error) {
			got, err := f.logits(fields)
			return same(got, err, base), err
		}
		const use = "use_sliding_window" // with sliding_window it requests a window
		changeNothing(t, s.Arch, map[string][]any{use: idle[use]}, unchanged)
		delete(idle, use)
		changeNothing(t, s.Arch, idle, unchanged)
	}
}

// changeNothing checks that values change nothing: first the first value of every name together,
// then the second values, and so on. Its error names those that change something on their own.
func changeNothing(t *testing.T, arch string, values map[string][]any, same func(map[string]any) (bool, error)) {
	t.Helper()
	for i := 0; ; i++ {
		all := map[string]any{}
		for name, list := range values {
			if i < len(list) {
				all[name] = list[i]
			}
		}
		if len(all) == 0 {
			return
		}
		ok, err := same(all)
		if ok {
			continue
		}
		t.Errorf("%s: %v change something together: %v", arch, all, err)
		for name, v := range all {
			if ok, err := same(map[string]any{name: v}); !ok {
				t.Errorf("%s: %s = %v changes something: %v", arch, name, v, err)
			}
		}
	}
}

// same reports whether there are logits, and they are the same.
func same(got []float32, err error, want []float32) bool { return err == nil && sameBits(got, want) }

// oneHalved reports whether a shape's layers have only one half each.
func oneHalved(s synth.Shape) bool { return s.Config().Bare != nil && s.Config().LayerFFN == nil }

// still reports whether a shape's layers do not rotate positions in.
func still(s synth.Shape) bool {
	return oneHalved(s) || slices.Contains([]string{"kimi-linear", "jamba", "gpt2"}, s.Arch)
}

// commonShapes returns the small shapes whose folders have the fields that most folders have.
func commonShapes() []synth.Shape {
	others := []string{"gemma4", "gpt2", "jamba", "kimi-linear", "laguna", "llama4", "mellum", "mimo2", "mistral4",
		"phimoe", "step35"}
	return slices.DeleteFunc(synth.Small(), func(s synth.Shape) bool {
		return slices.Contains(others, s.Arch) || oneHalved(s)
	})
}

// A config.json that says the same in another way, or leaves out transformers' defaults, gives the
// same model. Neutral values change nothing.
func TestFieldsInEveryForm(t *testing.T) {
	for _, s := range commonShapes() {
		f := keyFolder(t, s)
		must := func(change map[string]any) []float32 {
			t.Helper()
			x, err := f.logits(change)
			if err != nil {
				t.Fatalf("%s: %v: %v", s.Arch, change, err)
			}
			return x
		}
		theta, part := "rope_theta", object{}
		if s.Arch == "gptneox" {
			theta, part["partial_rotary_factor"] = "rotary_emb_base", 0.5
		}
		params := func(more object) map[string]any { // as transformers 5 writes them
			p := object{"rope_type": "default", "rope_theta": s.RopeBase}
			maps.Copy(p, part)
			maps.Copy(p, more)
			return map[string]any{theta: gone{}, "rotary_pct": gone{}, "rope_scaling": gone{}, "rope_parameters": p}
		}
		base := must(nil)
		for i, change := range []map[string]any{
			{"hidden_act": gone{}}, {theta: gone{}}, {"attention_bias": gone{}}, params(nil), {"rope_scaling": nil},
			{"quantization_config": nil},
			{"use_sliding_window": true, "sliding_window": 64},
			{"layer_types": []string{"full_attention", "full_attention"}}, {"num_experts": 0},
			{"num_experts": 1}, // in dense models of a family with experts, such as Hunyuan
			{"is_causal": true}, {"rope_scaling": object{"rope_type": "default"}},
			{"rope_parameters": object{"rope_type": "default"}},
		} {
			if _, about := change["sliding_window"]; s.Tune != nil && (about || change["layer_types"] != nil) {
				continue // it has windows
			}
			if change["num_experts"] != nil && s.Config().Experts > 0 {
				continue
			}
			if _, about := change[theta]; about && len(change) == 1 && s.Arch == "apertus" {
				continue // without any rotation fields it has transformers' rotation
			}
			if v, about := change["rope_scaling"]; about && v == nil && s.Arch == "gpt-oss" {
				continue // its folders must say it
			}
			if _, about := change["quantization_config"]; about && s.Name == "bitnet" {
				continue // the same
			}
			if !sameBits(must(change), base) {
				t.Errorf("%s: form %d, %v, is another model", s.Arch, i, change)
			}
		}
		linear := must(map[string]any{"rope_scaling": object{"type": "linear", "factor": 4.0}})
		if sameBits(linear, base) {
			t.Errorf("%s: linear scaling changes nothing", s.Arch)
		}
		for i, change := range []map[string]any{
			{"rope_scaling": object{"rope_type": "linear", "factor": 4}},
			params(object{"rope_type": "linear", "factor": 4}),
			{"rope_scaling": object{"rope_type": "linear", "factor": 4},
				"rope_parameters": object{"rope_type": "linear", "factor": 4}},
			{"rope_scaling": object{"rope_type": "linear", "factor": 4}, "rope_parameters": object{"rope_theta": s.RopeBase}},
		} {
			if !sameBits(must(change), linear) {
				t.Errorf("%s: form %d, %v, is not linear scaling by 4", s.Arch, i, change)
			}
		}
		for want, change := range map[string]map[string]any{
			"rope_theta has two values": {"rope_parameters": object{"rope_theta": 7e5}},
			"rope_scaling and rope_parameters disag": {"rope_scaling": object{"type": "linear", "factor": 4},
				"rope_parameters": object{"type": "linear", "factor": 8}},
		} {
			if _, err := f.logits(change); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v: %v", s.Arch, change, err)
			}
		}
	}
}

// A config.json with the names of other versions of transformers gives the same model.
func TestFieldsOfOtherVersions(t *testing.T) {
	forms := map[string]object{
		"gemma":       {"hidden_act": "gelu", "hidden_activation": nil},
		"qwen3moe":    {"num_experts": gone{}, "num_local_experts": 5},
		"hunyuan-moe": {"moe_topk": 2, "moe_intermediate_size": gone{}},
		"llama":       {"model_type": "internlm3", "rope_scaling": object{"rope_type": "dynamic", "factor": 6}},
		"internlm2":   {"rope_scaling": object{"type": "dynamic", "factor": 2}}, // nothing within the context
		"exaone":      {"num_hidden_layers": gone{}, "num_layers": 2},           // as published
		"mistral3": {"rope_theta": gone{}, "rope_parameters": object{"rope_type": "default", "rope_theta": 1e4,
			"max_position_embeddings": 64}},
		"olmo2": {"rope_theta": gone{}, "rope_parameters": object{ // OLMo 3, since it has windows
			"full_attention":    object{"rope_type": "default", "rope_theta": 1e4},
			"sliding_attention": object{"rope_type": "default", "rope_theta": 1e4}}},
	}
	for _, s := range synth.Small() {
		if form, ok := forms[s.Name]; ok {
			f := keyFolder(t, s)
			base, err := f.logits(nil)
			if got, other := f.logits(form); other != nil || !same(got, err, base) {
				t.Errorf("%s: %v is another model: %v", s.Name, form, other)
			}
		}
	}
}

// transformers 5 refuses an integer for a float, and the other way around.
func TestNumbersOfTransformers5(t *testing.T) {
	numbers := map[string]string{
		"gpt-oss": `"swiglu_limit":7.0`,
		"gemma2":  `"query_pre_attn_scalar":168,`, // Gemma 3 27B, from a file with the root as F32
		"gemma3":  `"query_pre_attn_scalar":168,`,
	}
	for _, s := range synth.Small() {
		want, ok := numbers[s.Name]
		if !ok {
			continue
		}
		c := s.Config()
		if c.AttnScale != 0 {
			c.AttnScale = float64(float32(1 / math.Sqrt(168)))
		}
		fields, err := c.Fields(tensor.BF16)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := json.Marshal(fields); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %s, %v: want %s", s.Name, data, err, want)
		}
	}
}

// EXAONE 4 and Command R7B give the layers that have a window as a number or a text, unless they list them.
func TestWindowPattern(t *testing.T) {
	list := []string{"sliding_attention", "full_attention"}
	for _, s := range synth.Small() {
		if s.Name != "exaone4" && s.Name != "cohere2" {
			continue
		}
		f := keyFolder(t, s)
		want, err := f.logits(object{"layer_types": list})
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []object{{"sliding_window_pattern": "LLLG", "layer_types": list},
			{"sliding_window_pattern": "LG", "layer_types": gone{}}, {"sliding_window_pattern": 2, "layer_types": gone{}}} {
			if got, err := f.logits(form); !same(got, err, want) {
				t.Errorf("%s: %v is another model: %v", s.Name, form, err)
			}
		}
		if _, err := f.logits(object{"sliding_window_pattern": "GGL"}); err == nil || !strings.Contains(err.Error(), "LLLG") {
			t.Errorf("%s: a pattern that ends with a window: %v", s.Name, err)
		}
	}
}

// Fields that config.json lacks have transformers' defaults.
func TestFieldDefaults(t *testing.T) {
	for _, c := range []struct {
		json string
		want func(c *model.Config) bool
	}{
		{`"model_type": "qwen3"`, func(c *model.Config) bool {
			return c.HeadDim == 128 && c.KVHeads == 32 && c.NormEps == 1e-6 && c.Rope.Base == 1e4 && !c.Tied
		}},
		{`"model_type": "qwen2"`, func(c *model.Config) bool { return c.HeadDim == 8 && c.KVHeads == 32 }},
		{`"model_type": "llama"`, func(c *model.Config) bool {
			return c.HeadDim == 8 && c.KVHeads == 64 &&
				c.NormEps == 1e-6
		}},
		{`"model_type": "gpt_neox", "head_dim": 32`, func(c *model.Config) bool {
			return c.Rope.Dims == 8 &&
				c.NormEps == 1e-5 && c.Parallel
		}},
	} {
		data := `{"hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 64, "intermediate_size": 96,
		"vocab_size": 400,
			"max_position_embeddings": 64, ` + c.json + `}`
		got, err := model.ParseFolder([]byte(data), &struct{}{})
		if err != nil || !c.want(&got) {
			t.Errorf("%s: %+v, %v", c.json, got, err)
		}
	}
}

// Tensors of a folder that transformers would ignore, or that belong to another model, are refused
// by name. Buffers may be missing.
func TestFolderTensorsAreObeyedOrRefused(t *testing.T) {
	for i, s := range commonShapes() {
		f, want := keyFolder(t, s), expectationsOf(s)
		base, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		layer := "model.layers.1."
		if s.Arch == "gptneox" {
			layer = "gpt_neox.layers.1."
		}
		buffers := map[string][]any{}
		for _, name := range []string{"self_attn.rotary_emb.inv_freq", "attention.rotary_emb.inv_freq", "attention.bias",
			"attention.masked_bias"} {
			buffers[layer+name] = []any{filled(t, layer+name, 1, 4)}
		}
		changeNothing(t, s.Arch, buffers, func(tensors map[string]any) (bool, error) {
			var add []tensor.Tensor
			for _, x := range tensors {
				add = append(add, x.(tensor.Tensor))
			}
			got, err := f.with(add...).logits(nil)
			return same(got, err, base), err
		})
		for j, name := range []string{layer + "mlp.gate.weight", layer + "self_attn.sinks",
			layer + "mlp.experts.0.up_proj.weight", "score.weight", "model.layers.2.input_layernorm.weight",
			layer + "input_layernorm.scale", "lm_head.bias", "embed_out.bias", layer + "self_attn.q_proj.weight_scale",
			"mtp.fc.weight", "model.norm.bias", layer + "mlp.up_proj.lora_A.weight"} {
			if (i+j)%2 > 0 || want.own != "" && strings.HasSuffix(name, want.own) { // half of them, in turn
				continue
			}
			if _, err := f.with(filled(t, name, 1, 4)).logits(nil); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: tensor %s is not refused by its name: %v", s.Arch, name, err)
			}
		}
		for _, bias := range []struct {
			part, field string // "-": it always has one
			rows        int
		}{
			{"self_attn.q_proj", want.queryBias, s.Heads * s.HeadDim}, {"self_attn.o_proj", want.outputBias, s.Hidden},
			{"mlp.down_proj", want.downBias, s.Hidden}, {"attention.dense", want.denseBias, s.Hidden},
		} {
			name := layer + bias.part + ".bias"
			with := f.with(filled(t, name, 0.7, bias.rows))
			switch bias.field {
			case "":
				if _, err := with.logits(map[string]any{"attention_bias": true, "mlp_bias": true}); err == nil ||
					!strings.Contains(err.Error(), name) {
					t.Errorf("%s: %s is not refused by its name: %v", s.Arch, name, err)
				}
				continue
			case "-":
			default:
				if _, err := with.logits(map[string]any{bias.field: false}); err == nil ||
					!strings.Contains(err.Error(), bias.field) {
					t.Errorf("%s: %s without %s: %v", s.Arch, name, bias.field, err)
				}
			}
			if got, err := with.logits(map[string]any{bias.field: true}); err != nil || sameBits(got, base) {
				t.Errorf("%s: %s changes nothing: %v", s.Arch, name, err)
			}
		}
		if !s.Tied {
			continue
		}
		from, err := safetensors.OpenFolder(f.dir)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := from.Tensor("model.embed_tokens.weight")
		x.Name = "lm_head.weight"
		if got, err := f.with(x).logits(nil); err != nil || !sameBits(got, base) {
			t.Errorf("%s: the embedding as output matrix: %v", s.Arch, err)
		}
		from.Close()
		other := f.with(filled(t, "lm_head.weight", 1, s.Vocab, s.Hidden))
		if _, err := other.logits(nil); err == nil || !strings.Contains(err.Error(), "lm_head.weight") ||
			!strings.Contains(err.Error(), "tie_word_embeddings") {
			t.Errorf("%s: another output matrix: %v", s.Arch, err)
		}
		if _, err := other.logits(map[string]any{"tie_word_embeddings": false}); err != nil {
			t.Errorf("%s: an output matrix: %v", s.Arch, err)
		}
	}
}

// Every field that transformers reads for a text model of Gemma 4 changes the logits, or is refused by name.
func TestGemma4Fields(t *testing.T) {
	for _, s := range synth.Small() {
		if s.Arch != "gemma4" {
			continue
		}
		f := keyFolder(t, s)
		base, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]any{
			"head_dim": 16, "global_head_dim": 16, "attention_k_eq_v": f.fields["attention_k_eq_v"] == false,
			"num_kv_shared_layers": 1, "hidden_size_per_layer_input": 24, "vocab_size_per_layer_input": 300,
			"layer_types":                 []string{"full_attention", "sliding_attention"},
			"final_logit_softcapping":     2.5,
			"use_bidirectional_attention": "all", "hidden_activation": "relu",
			"enable_moe_block": f.fields["enable_moe_block"] == false,
			"top_k_experts":    1, "moe_intermediate_size": 24, "num_experts": 3,
			"per_layer_config": object{"1": object{"head_dim": 16}},
			"rope_parameters": object{"full_attention": object{"rope_type": "proportional", "rope_theta": 500,
				"partial_rotary_factor": 0.5},
				"sliding_attention": object{"rope_type": "default", "rope_theta": 1e4}},
		} {
			experts := strings.Contains(name, "experts") || name == "moe_intermediate_size"
			if experts && f.fields["enable_moe_block"] == false || name == "vocab_size_per_layer_input" &&
				s.Config().PerLayer == 0 {
				continue // nothing reads it without experts or tables
			}
			if got, err := f.logits(object{name: v}); err == nil && sameBits(got, base) {
				t.Errorf("%s: %s = %v changes nothing", s.Name, name, v)
			}
		}
		for _, types := range []any{nil, "vision"} {
			if got, err := f.logits(object{"use_bidirectional_attention": types}); err != nil || !sameBits(got, base) {
				t.Errorf("%s: use_bidirectional_attention %v, of images alone: %v", s.Name, types, err)
			}
		}
	}
}

// So does every field of Gemma 3n. A table without rows for the last tokens, those of images and
// sound, has zeros there.
func TestGemma3nFields(t *testing.T) {
	small := synth.Small()
	s := small[slices.IndexFunc(small, func(s synth.Shape) bool { return s.Arch == "gemma3n" })]
	f := keyFolder(t, s)
	base, err := f.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"altup_num_inputs": 4, "altup_active_idx": 1, "altup_correct_scale": false, "laurel_rank": 16,
		"num_kv_shared_layers": 1, "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 401,
		"activation_sparsity_pattern": []float64{0, 0, 0, 0.9}, "final_logit_softcapping": 2.5, "rope_local_base_freq": 500,
		"intermediate_size": []int{96, 96, 64, 96}, "hidden_activation": "relu",
		"layer_types": slices.Repeat([]string{"sliding_attention"}, 4),
	} {
		if got, err := f.logits(object{name: v}); err == nil && sameBits(got, base) {
			t.Errorf("%s = %v changes nothing", name, v)
		}
	}
	same := object{"intermediate_size": slices.Repeat([]int{96}, 4), "altup_correct_scale": gone{}}
	if got, err := f.logits(same); err != nil || !sameBits(got, base) {
		t.Errorf("%v: %v", same, err)
	}
	from, err := safetensors.OpenFolder(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	const name = "model.embed_tokens_per_layer.weight"
	x, _ := from.Tensor(name)
	rows, n := x.Shape[0]-5, x.Shape[1]
	numbers, err := x.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	table := func(rows int) tensor.Tensor {
		x, err := tensor.FromFloat32s(name, tensor.F32, []int{rows, n}, numbers[:rows*n])
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	short := f.with(table(rows))
	clear(numbers[rows*n:])
	whole := f.with(table(rows + 5))
	logits := func(dir string) []float32 {
		m, err := model.Open(dir, model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		return read(t, m, []int32{3, int32(rows), 17, int32(rows + 4)})
	}
	for _, f := range []*folder{short, whole} {
		if _, err := f.logits(nil); err != nil { // writes config.json
			t.Fatal(err)
		}
	}
	if !sameBits(logits(short.dir), logits(whole.dir)) {
		t.Error("the rows that a table lacks are not zeros")
	}
}

// So does every field of Llama 4, and what transformers has as a default may be missing.
func TestLlama4Fields(t *testing.T) {
	small := synth.Small()
	f := keyFolder(t, small[slices.IndexFunc(small, func(s synth.Shape) bool { return s.Arch == "llama4" })])
	base, err := f.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"attention_chunk_size": 5, "intermediate_size_mlp": 64, "interleave_moe_layer_step": 1, "moe_layers": []int{0},
		"no_rope_layers": []int{1, 0}, "layer_types": []string{"chunked_attention", "full_attention"},
		"use_qk_norm": false, "num_experts_per_tok": 1, "hidden_act": "gelu",
	} {
		if got, err := f.logits(object{name: v}); err == nil && sameBits(got, base) {
			t.Errorf("%s = %v changes nothing", name, v)
		}
	}
	nope := object{"no_rope_layers": []int{1, 0}, "layer_types": nil}
	other, err := f.logits(nope)
	if err != nil || sameBits(other, base) {
		t.Errorf("%v: %v", nope, err)
	}
	for name, v := range map[string]any{"attn_temperature_tuning": false, "attn_scale": 0.5, "floor_scale": 5} {
		change := maps.Clone(nope)
		change[name] = v
		if got, err := f.logits(change); err != nil || sameBits(got, other) {
			t.Errorf("%s = %v changes nothing: %v", name, v, err)
		}
	}
	same := object{"no_rope_layers": []int{}, "layer_types": nil, "moe_layers": []int{1}, "interleave_moe_layer_step": gone{},
		"use_qk_norm": gone{}, "attn_temperature_tuning": 4, "attn_scale": gone{}}
	if got, err := f.logits(same); err != nil || !sameBits(got, base) {
		t.Errorf("%v: %v", same, err)
	}
}

// attn_factor multiplies YaRN's own attention factor, as in vLLM; attention_factor is the whole
// factor. The context is the original one times YaRN's factor, if that is larger, also as in vLLM.
func TestYarnFields(t *testing.T) {
	shape, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	f := keyFolder(t, shape)
	logits := func(field string, x float64) []float32 {
		t.Helper()
		got, err := f.logits(map[string]any{"rope_scaling": object{"rope_type": "yarn", "factor": 4,
			"original_max_position_embeddings": 16, field: x}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	// Qwen 3's model cards say to add rope_scaling and leave max_position_embeddings as it is.
	logits("original_max_position_embeddings", float64(shape.Context))
	if c, err := model.ReadFolder(f.dir); err != nil || c.Context != 4*shape.Context {
		t.Errorf("a context of %d with YaRN's factor of 4, %v: want %d", c.Context, err, 4*shape.Context)
	}
	own := 1 + math.Log(4)/10
	// As in DeepSeek-R1-0528-Qwen3-8B, whose attention is not multiplied at all.
	if !sameBits(logits("attn_factor", 1/own), logits("attention_factor", 1)) {
		t.Error("attn_factor undoes YaRN's own factor, and attention is multiplied")
	}
	if !sameBits(logits("attn_factor", 1), logits("attention_factor", own)) ||
		sameBits(logits("attn_factor", 1), logits("attn_factor", 1.5)) {
		t.Error("attn_factor does not multiply YaRN's own factor")
	}
}
