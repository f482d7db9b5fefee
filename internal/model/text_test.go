package model_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
)

// A folder with towers, whose config.json has the text model's fields in text_config, is the text
// model, under both ways of naming its tensors, and tie_word_embeddings counts at either level.
func TestFoldersWithTowers(t *testing.T) {
	for _, s := range synth.Small() {
		if s.Name != "mistral3" && s.Name != "gemma3" {
			continue
		}
		f := keyFolder(t, s)
		base, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, start := range []string{"model.language_model.", "language_model.model."} {
			to := &folder{t: t, dir: t.TempDir(), fields: object{"model_type": "whole", "text_config": f.fields}}
			from, err := safetensors.OpenFolder(f.dir)
			if err != nil {
				t.Fatal(err)
			}
			w := safetensors.NewWriter()
			for _, info := range from.Tensors {
				x, _ := from.Tensor(info.Name)
				x.Name = start + x.Name[len("model."):]
				w.AddTensor(x)
			}
			for _, name := range []string{"vision_tower.patch_conv.bias", "multi_modal_projector.linear_1.weight",
				"model.vision_tower.ln_pre.weight", "model.multi_modal_projector.norm.weight"} {
				w.AddTensor(filled(t, name, 1, 4))
			}
			if err := w.WriteFile(filepath.Join(to.dir, "model.safetensors")); err != nil {
				t.Fatal(err)
			}
			from.Close()
			untied := maps.Clone(f.fields)
			untied["tie_word_embeddings"] = false
			for _, change := range []object{nil, {"text_config": untied, "tie_word_embeddings": true}} {
				if got, err := to.logits(change); !same(got, err, base) {
					t.Errorf("%s, %s, %v: another model: %v", s.Name, start, change, err)
				}
			}
		}
	}
}

// Published folders of Gemma 3 with towers leave out transformers' defaults.
func TestGemma3Defaults(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "gemma3", "text_config": {
		"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
		"sliding_window": 1024, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := model.ReadFolder(dir)
	if err != nil || c.Heads != 8 || c.Vocab != 262208 || c.Context != 131072 || !c.Tied {
		t.Errorf("%+v, %v", c, err)
	}
}

// A folder of Gemma 4 12B is Gemma 4 without tables; newer versions of transformers leave out their fields.
func TestGemma4Unified(t *testing.T) {
	const same = `"vocab_size": 262144, "hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 12,
		"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "max_position_embeddings": 262144,
		"attention_k_eq_v": true, "final_logit_softcapping": 30.0, "use_bidirectional_attention": "vision"`
	read := func(fields string) model.Config {
		t.Helper()
		dir := t.TempDir()
		text := `{"model_type": "whole", "text_config": {` + same + ", " + fields + "}}"
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := model.ReadFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	want := read(`"model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "sliding_window": 1024,
		"global_head_dim": 512, "num_global_key_value_heads": 1`)
	for _, fields := range []string{
		`"global_head_dim": 512, "num_global_key_value_heads": 1, "hidden_size_per_layer_input": 0, "num_experts": null,
			"vocab_size_per_layer_input": 262144, "enable_moe_block": false, "sliding_window": 1024`,
		`"per_layer_config": {"5": {"head_dim": 512, "num_key_value_heads": 1},
			"11": {"head_dim": 512, "num_key_value_heads": 1}}`,
	} {
		if got := read(`"model_type": "gemma4_unified_text", ` + fields); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if !model.OfTower("model.vision_embedder.pos_norm.bias") {
		t.Error("what reads images is taken for the text model's")
	}
}

// A folder of a bare model, as embedding models have, gives the same logits as the model with its
// head. A file next to it says that an embedding is the last token's state.
func TestBareFolders(t *testing.T) {
	for _, s := range synth.Small() {
		if s.Arch != "qwen3" || !s.Tied {
			continue
		}
		f := keyFolder(t, s)
		base, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		to := &folder{t: t, dir: t.TempDir(), fields: f.fields}
		from, err := safetensors.OpenFolder(f.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		w := safetensors.NewWriter()
		for _, info := range from.Tensors {
			x, _ := from.Tensor(info.Name)
			x.Name = x.Name[len("model."):]
			w.AddTensor(x)
		}
		if err := w.WriteFile(filepath.Join(to.dir, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
		for _, tied := range []bool{true, false} {
			if got, err := to.logits(object{"tie_word_embeddings": tied}); !same(got, err, base) {
				t.Errorf("%s, tied %v: another model: %v", s.Name, tied, err)
			}
		}
		path := filepath.Join(to.dir, model.PoolingFile)
		if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]bool{`{"pooling_mode_mean_tokens": true, "pooling_mode_lasttoken": false}`: false,
			`{"pooling_mode_lasttoken": true}`: true, `{"pooling_mode": "lasttoken"}`: true} {
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			c, file, err := model.OpenFolder(to.dir)
			if err != nil || c.PoolLast != want {
				t.Fatalf("%s: %v, %v", text, c.PoolLast, err)
			}
			file.Close()
		}
		if err := os.WriteFile(path, []byte(`{"pooling_mode_lasttoken": 1}`), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := model.OpenFolder(to.dir); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("a number where true or false must be: %v", err)
		}
	}
}

// Errors use the folder's names of its tensors.
func TestNamesInErrors(t *testing.T) {
	f := keyFolder(t, synth.Small()[0])
	layers := f.fields["num_hidden_layers"]
	for name, change := range map[string]object{
		"gate_proj.weight": {"intermediate_size": 16},
		fmt.Sprintf("model.layers.%v.input_layernorm.weight", layers): {"num_hidden_layers": 7},
	} {
		if _, err := f.logits(change); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}
