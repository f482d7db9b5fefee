package reference_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/reference"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// compare checks the log-probabilities of package model, which computes in float32, for every token
// after every position: most is the largest difference from the reference's that is allowed.
func compare(t *testing.T, path string, tokens []int32, most float64) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := reference.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	want := r.Logits(tokens)
	m, err := model.Open(path, model.Options{KV: nn.KVF32})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	pass, rows := m.NewPass(), model.Rows{Cache: m.NewCache(), Tree: tree.Chain(tokens)}
	for i := range tokens {
		rows.Logits = append(rows.Logits, int32(i))
	}
	if err := pass.Run(t.Context(), []model.Rows{rows}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range tokens {
		var got []float64
		for _, x := range pass.Logits(0, i) {
			got = append(got, float64(x))
		}
		a, b := logSum(got), logSum(want[i])
		for token := range got {
			if d := math.Abs(got[token] - a - want[i][token] + b); d > most || math.IsNaN(d) {
				t.Fatalf("position %d, token %d: log-probability %g, the reference's %g", i, token, got[token]-a, want[i][token]-b)
			}
		}
	}
}

func logSum(x []float64) float64 {
	largest, sum := math.Inf(-1), 0.0
	for _, v := range x {
		largest = max(largest, v)
	}
	for _, v := range x {
		sum += math.Exp(v - largest)
	}
	return largest + math.Log(sum)
}

// Models with random weights have the reference's logits.
func TestRandomModels(t *testing.T) {
	for _, name := range []string{"tiny-llama2", "tiny-llama3", "tiny-qwen2", "tiny-qwen3"} {
		t.Run(name, func(t *testing.T) {
			shape, err := synth.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := synth.Write(context.Background(), path, shape, synth.Options{Type: tensor.F32, Seed: 3}); err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			tokens := make([]int32, 40)
			for i := range tokens {
				tokens[i] = r.Int32N(int32(shape.Vocab))
			}
			compare(t, path, tokens, 5e-4)
		})
	}
}

// A trained model has them too.
func TestTrainedModel(t *testing.T) {
	path := filepath.Join(os.Getenv("GROVE_DATA"), "models/go-7m/go-7m-f32.gguf")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("GROVE_DATA names no folder with models/go-7m: %v", err)
	}
	compare(t, path, []int32{1, 17, 256, 300, 4096, 8000, 5, 5, 5, 77, 1024, 99}, 1e-4)
}

// A model that the reference does not support is refused by its name.
func TestOtherModels(t *testing.T) {
	shape, err := synth.Lookup("tiny-gptneox")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Type: tensor.F32, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := reference.Load(f); err == nil {
		t.Error("a GPT-NeoX model is computed")
	}
}
