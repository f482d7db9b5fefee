package convert

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

func TestErrors(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := synth.WriteHF(ctx, at("hf"), shape(t, "tiny-llama2"), synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(ctx, at("a.gguf"), shape(t, "tiny-llama2"), synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	edit := func(change func(m map[string]any)) error {
		b, err := os.ReadFile(at("hf/config.json"))
		if err != nil {
			t.Fatal(err)
		}
		defer os.WriteFile(at("hf/config.json"), b, 0o666)
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		b2, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, at("hf/config.json"), b2)
		_, err = ToGGUF(ctx, at("hf"), at("x.gguf"), Options{})
		return err
	}
	for want, change := range map[string]func(m map[string]any){
		"mamba":               func(m map[string]any) { m["model_type"] = "mamba" },
		"hidden_size":         func(m map[string]any) { delete(m, "hidden_size") },
		"num_hidden_layers":   func(m map[string]any) { m["num_hidden_layers"] = "three" },
		"layer count is -1":   func(m map[string]any) { m["num_hidden_layers"] = -1 },
		"is missing":          func(m map[string]any) { m["num_hidden_layers"] = 99 },
		"has no place":        func(m map[string]any) { m["num_hidden_layers"] = 1 },
		"want":                func(m map[string]any) { m["num_attention_heads"] = 3 },
		"rope_scaling":        func(m map[string]any) { m["rope_scaling"] = map[string]any{"rope_type": "yarn"} },
		"gate_proj":           func(m map[string]any) { m["intermediate_size"] = 32 },
		"want an integer":     func(m map[string]any) { m["vocab_size"] = 3.5 },
		"embedding only":      func(m map[string]any) { m["vocab_size"] = 10 },
		"layer_types":         func(m map[string]any) { m["layer_types"] = []string{"linear_attention"} },
		"hidden_act is \"x\"": func(m map[string]any) { m["hidden_act"] = "x" },
	} {
		if err := edit(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := os.Stat(at("x.gguf")); err == nil {
		t.Error("a failed conversion left a file")
	}
	if _, err := ToHF(ctx, at("a.gguf"), at("hf"), Options{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder that is in use: %v", err)
	}
	if _, err := ToHF(ctx, at("a.gguf"), at("new"), Options{Type: tensor.Q8_0}); err == nil {
		t.Error("Q8_0 in a folder is no error")
	}
	if _, err := Quantize(ctx, at("a.gguf"), at("a.gguf"), Options{}); err == nil {
		t.Error("writing the file that is read is no error")
	}
	if _, err := ToHF(ctx, at("a.gguf"), at("new"), Options{Type: tensor.Q4_K}); err == nil {
		t.Error("Q4_K in a folder is no error")
	}
	if _, err := Quantize(ctx, at("a.gguf"), at("b.gguf"), Options{Type: numtype.Q2_K}); err == nil {
		t.Error("Q2_K is no error")
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := ToHF(done, at("a.gguf"), at("new"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := ToGGUF(done, at("hf"), at("x.gguf"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := os.Mkdir(at("empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(at("empty"))
	if _, err := ToHF(ctx, at("a.gguf"), ".", Options{}); err == nil || !strings.Contains(err.Error(), "the folder itself") {
		t.Errorf("into the current folder: %v", err)
	}
	t.Chdir(dir)
	if err := os.RemoveAll(at("empty")); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("leftovers: %v", list)
	}
}
