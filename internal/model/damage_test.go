package model_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// tinyFile returns the bytes of a random model's GGUF file.
func tinyFile(t testing.TB, shape string) []byte {
	t.Helper()
	s, err := synth.Lookup(shape)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: tensor.F16, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tryOpen opens a damaged file. Opening may fail with an error that names the file; a
// model that opens must run.
func tryOpen(t testing.TB, data []byte) {
	path := filepath.Join(t.TempDir(), "damaged.gguf")
	testfile.Write(t, path, data)
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		if !strings.Contains(err.Error(), path) {
			t.Fatalf("an error that does not name the file: %v", err)
		}
		return
	}
	defer m.Close()
	p, c := m.NewPass(), m.NewCache()
	if err := p.Run(context.Background(), []model.Rows{{Cache: c, Tree: tree.Chain([]int32{0}), Logits: []int32{0}}},
		nil); err != nil {
		t.Fatalf("a model that opened does not run: %v", err)
	}
}

// Whatever the damage to a file, opening it returns an error that names it or a model that runs.
func TestOpenSurvivesDamage(t *testing.T) {
	cases := 60
	if testing.Short() {
		cases = 10
	}
	for _, shape := range []string{"tiny-qwen3-untied", "tiny-gptneox"} {
		data := tinyFile(t, shape)
		header := min(len(data), 24<<10) // metadata and the tensors' shapes
		r := rand.New(rand.NewPCG(5, 6))
		for range cases {
			d := append([]byte(nil), data...)
			switch r.IntN(3) {
			case 0:
				d = d[:r.IntN(len(d))]
			case 1:
				for range 1 + r.IntN(4) {
					d[r.IntN(header)] = byte(r.Uint32())
				}
			case 2: // a number in the metadata changes
				i := r.IntN(header - 8)
				copy(d[i:], []byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()) & 1, 0})
			}
			tryOpen(t, d)
		}
	}
}

// FuzzOpen is the same with damage by the fuzzer: bytes that overwrite those at one place of the file.
func FuzzOpen(f *testing.F) {
	data := tinyFile(f, "tiny-qwen3-untied")
	f.Add(uint32(0), []byte("GGUF"))
	f.Add(uint32(8), []byte{0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, at uint32, with []byte) {
		d := append([]byte(nil), data...)
		copy(d[int(at)%len(d):], with)
		tryOpen(t, d)
	})
}

// A Hugging Face configuration with a wrong field is refused by that field's name.
func TestConfigRefusals(t *testing.T) {
	s, err := synth.Lookup("tiny-qwen3-untied")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := synth.WriteHF(context.Background(), dir, s, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field string
		value any
		want  string
	}{
		{"model_type", "mamba", "model_type"},
		{"hidden_act", "relu", "hidden_act"},
		{"use_sliding_window", true, "use_sliding_window"},
		{"num_attention_heads", 5, "heads"},
		{"num_key_value_heads", 3, "evenly"},
		{"num_hidden_layers", 1 << 30, "layer count"},
		{"num_hidden_layers", 3, "missing"},
		{"vocab_size", 7, "has shape"},
		{"intermediate_size", 0, "intermediate_size"},
		{"rms_norm_eps", 0, "epsilon"},
		{"rope_theta", -1, "rope base"},
		{"rope_scaling", map[string]any{"rope_type": "dynamic", "factor": 4}, "or the type default"},
		{"rope_scaling", map[string]any{"rope_type": "llama3", "factor": 4}, "rope_scaling"},
		{"hidden_size", "wide", "hidden_size"},
		{"moe_topk", []int{2, 3}, "field \"moe_topk\" is a list of different numbers"},
	} {
		var cfg map[string]any
		if err := json.Unmarshal(data, &cfg); err != nil {
			t.Fatal(err)
		}
		cfg[c.field] = c.value
		bad, err := json.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, path, bad)
		if _, err := model.Open(dir, model.Options{Threads: 1}); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%s = %v: error %v, want one with %q and the path", c.field, c.value, err, c.want)
		}
	}
}
