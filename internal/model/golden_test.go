package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/tensor"
)

// goldenPrompt is a prompt's result in other engines. Empty fields are not compared.
type goldenPrompt struct {
	Prompt       string    `json:"prompt"`
	IDs          []int32   `json:"ids"`
	LastLogits   []float32 `json:"last_logits"`
	Reference    []float32 `json:"reference_logits"`
	Greedy       []int32   `json:"greedy"`
	GreedyMargin []float32 `json:"greedy_margin"`
}

// closeMargin is the gap between the two best logits below which another exact engine may choose the other token.
const closeMargin = 1e-3

// read runs a model over a text, and returns the last logits.
func read(t *testing.T, m *model.Model, ids []int32) []float32 {
	t.Helper()
	p, c := m.NewPass(), m.NewCache()
	defer c.Free()
	if err := p.Prefill(context.Background(), c, ids, true); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(p.Logits(0, 0))
}

// checkGolden compares logits within 1e-4 of the largest, then greedy tokens up to the first close call.
func checkGolden(t *testing.T, m *model.Model, g goldenPrompt) {
	t.Helper()
	ctx := context.Background()
	p, c := m.NewPass(), m.NewCache()
	defer c.Free()
	if err := p.Prefill(ctx, c, g.IDs, true); err != nil {
		t.Fatal(err)
	}
	compareLogits(t, p.Logits(0, 0), g.LastLogits)
	compareLogits(t, p.Logits(0, 0), g.Reference)
	for i, want := range g.Greedy {
		got := int32(simd.ArgMax(p.Logits(0, 0)))
		if got != want {
			if g.GreedyMargin[i] >= closeMargin {
				t.Errorf("greedy token %d is %d, want %d (margin %g)", i, got, want, g.GreedyMargin[i])
			}
			return
		}
		if err := p.Prefill(ctx, c, []int32{got}, true); err != nil {
			t.Fatal(err)
		}
	}
}

func compareLogits(t *testing.T, got, want []float32) {
	t.Helper()
	if want == nil {
		return
	}
	var largest, worst float32
	at := 0
	for i, w := range want {
		largest = max(largest, w, -w)
		if d := max(got[i]-w, w-got[i]); d > worst || d != d {
			worst, at = d, i
		}
	}
	if !(worst <= 1e-4*largest) {
		t.Errorf("logit %d differs by %g, more than 1e-4 of the largest, %g", at, worst, largest)
	}
	t.Logf("largest difference %.2g of the largest logit", worst/largest)
}

// The golden file has PyTorch's results for go-7m in f32 (its field made_with says how).
func TestGo7MAgainstPyTorch(t *testing.T) {
	dir := testdata.Path(t, "models/go-7m")
	data, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Prompts []goldenPrompt }
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "go-7m-f32.gguf")} {
		m, err := model.Open(path, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for _, g := range golden.Prompts {
			t.Run(filepath.Base(path), func(t *testing.T) { checkGolden(t, m, g) })
		}
	}
}

// The golden files have the results of llama.cpp and PyTorch for seeded random models in F32, one
// for each architecture and each of its variations; their fields made_with and how say how they
// were made. The GGUF file, the Hugging Face folder and the file with another converter's keys of a
// seed are the same function: if they have the same bits after the whole text, everything else is
// compared only once.
func TestArchitecturesAgainstOtherEngines(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden_*.json"))
	if err != nil || len(files) < 8 {
		t.Fatalf("golden files: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var g struct {
				Shape     string
				Seed      uint64
				Context   int
				IDs       []int32   `json:"prompt_ids"`
				Last      []float32 `json:"last_logits"`
				Reference []float32 `json:"reference_logits"`
				Greedy    []int32
				Margin    []float32 `json:"greedy_margin"`
				LogProbs  []float64 `json:"log_probs"`
				Own       float64   `json:"ways_differ"` // between the whole text at once and token by token
				Keys      map[string][2]any
			}
			if err := json.Unmarshal(data, &g); err != nil {
				t.Fatal(err)
			}
			shape, err := synth.Lookup(g.Shape)
			if err != nil {
				t.Fatal(err)
			}
			near := 1e-4
			if g.Own > near {
				near = 5e-4
			}
			ctx := context.Background()
			path, dir := filepath.Join(t.TempDir(), "m.gguf"), t.TempDir()
			o := synth.Options{Type: tensor.F32, Seed: g.Seed}
			if err := errors.Join(synth.Write(ctx, path, shape, o), synth.WriteHF(ctx, dir, shape, o)); err != nil {
				t.Fatal(err)
			}
			var first []float32
			for _, p := range []string{path, dir} {
				m, err := model.Open(p, model.Options{Threads: 1, Context: g.Context})
				if err != nil {
					t.Fatal(err)
				}
				last := read(t, m, g.IDs)
				if first == nil || !sameBits(last, first) {
					checkGolden(t, m, goldenPrompt{IDs: g.IDs, LastLogits: g.Last, Reference: g.Reference, Greedy: g.Greedy,
						GreedyMargin: g.Margin})
					checkLogProbs(t, m, g.IDs, g.LogProbs, near)
				}
				first = last
				m.Close()
			}
			if g.Keys != nil {
				m := withKeys(t, path, shape.Arch, g.Keys)
				if !sameBits(read(t, m, g.IDs), first) {
					checkLogProbs(t, m, g.IDs, g.LogProbs, near)
				}
				m.Close()
			}
		})
	}
}

// checkLogProbs compares the log-probability of each token of a text except the first.
func checkLogProbs(t *testing.T, m *model.Model, ids []int32, want []float64, near float64) {
	t.Helper()
	if want == nil {
		return
	}
	p, c := m.NewPass(), m.NewCache()
	defer c.Free()
	worst := 0.0
	for i, id := range ids[:len(ids)-1] {
		if err := p.Prefill(context.Background(), c, []int32{id}, true); err != nil {
			t.Fatal(err)
		}
		logits, sum := p.Logits(0, 0), 0.0
		for _, x := range logits {
			sum += math.Exp(float64(x - logits[ids[i+1]]))
		}
		worst = max(worst, math.Abs(-math.Log(sum)-want[i]))
	}
	if !(worst <= near) {
		t.Errorf("a log-probability differs by %g, more than %g", worst, near)
	}
	t.Logf("log-probabilities differ by %.2g at most", worst)
}

// withKeys opens a GGUF file with the keys that another converter writes for the same tensors.
func withKeys(t *testing.T, path, arch string, keys map[string][2]any) *model.Model {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := new(gguf.Writer)
	for name, value := range f.Meta() {
		if !strings.HasPrefix(name, arch+".") && !strings.HasPrefix(name, "xielu.") {
			w.Set(name, value)
		}
	}
	for key, v := range keys {
		w.Set(key, keyValue(v[0].(string), v[1]))
	}
	for _, info := range f.Tensors {
		x, _ := f.Tensor(info.Name)
		w.AddTensor(x)
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	m, err := model.OpenGGUF("converted.gguf", b.Bytes(), model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// keyValue converts a number, text or list of JSON to a value of GGUF.
func keyValue(kind string, v any) any {
	if list, ok := v.([]any); ok {
		values := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(keyValue(kind, list[0]))), 0, len(list))
		for _, x := range list {
			values = reflect.Append(values, reflect.ValueOf(keyValue(kind, x)))
		}
		return values.Interface()
	}
	x, _ := v.(float64)
	if v == nil {
		x = math.Inf(-1)
	}
	switch kind {
	case "u32":
		return uint32(x)
	case "i32":
		return int32(x)
	case "f32":
		return float32(x)
	}
	return v
}
