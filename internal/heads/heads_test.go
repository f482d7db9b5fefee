package heads_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/synth"
	eaglesynth "github.com/grovellm/grove/internal/synthetic/eagle"
	jetsynth "github.com/grovellm/grove/internal/synthetic/jet"
	routersynth "github.com/grovellm/grove/internal/synthetic/shortlist"
	blocksynth "github.com/grovellm/grove/internal/synthetic/specblock"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// Heads of every kind are told apart, in either format, and fit their target and no other.
func TestKinds(t *testing.T) {
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 1))
	at := func(name string) string { return filepath.Join(dir, name) }
	s, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(synth.Write(t.Context(), at("model.gguf"), s, synth.Options{Seed: 1}), synth.WriteHF(t.Context(), at("model"), s, synth.Options{Seed: 1})); err != nil {
		t.Fatal(err)
	}
	target, err := model.ReadFolder(at("model"))
	if err != nil {
		t.Fatal(err)
	}
	must := func(weights []tensor.Tensor, err error) []tensor.Tensor {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return weights
	}
	j, e3, e2, b := jetsynth.Config(rng, target, tensor.F32), eaglesynth.Config(rng, 3, target, tensor.F32), eaglesynth.Config(rng, 2, target, tensor.F32), blocksynth.Config(rng, target, tensor.F32)
	j.Causal, j.Taps = true, []int{1, 2}
	e3.DraftVocab, e3.TargetLayers, e3.Taps = 40, target.Layers, []int{1, 2, 3}
	jw, bw := must(jetsynth.Tensors(j, tensor.F32, 1)), must(blocksynth.Tensors(b, tensor.F32, 1))
	w3, w2 := must(eaglesynth.Tensors(e3, tensor.F32, 1)), must(eaglesynth.Tensors(e2, tensor.F32, 3))
	if err := errors.Join(
		jet.WriteGGUF(at("jet.gguf"), "x", &j, jw, nil, tensor.F32), jet.WriteFolder(at("jet"), &j, jw),
		eagle.WriteGGUF(at("eagle.gguf"), "x", &e3, w3, eaglesynth.Tokens(e3, 1), nil, tensor.F32), eagle.WriteFolder(at("eagle"), &e3, w3, eaglesynth.Tokens(e3, 1)),
		eagle.WriteFolder(at("second"), &e2, w2, nil),
		specblock.WriteGGUF(at("block.gguf"), "x", &b, bw, blocksynth.Tokens(b, 1), nil, tensor.F32), specblock.WriteFolder(at("block"), &b, bw, blocksynth.Tokens(b, 1)),
		routersynth.Write(at("router.gguf"), rng, target.Vocab, target.Hidden, tensor.F32),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"jet": "block head, causal (JetSpec)", "jet.gguf": "taps after layers [1 2]", "eagle": "EAGLE-3 head: layers", "eagle.gguf": "an output head of 40 tokens",
		"second": "EAGLE-2 head: layers", "block": "SpecBlock head: blocks of", "block.gguf": "SpecBlock head: blocks of", "router.gguf": "router of",
	} {
		h := draft.Head{Name: at(name)}
		text, err := heads.Describe(h)
		if err != nil || !strings.Contains(text, want) || !heads.Is(h) {
			t.Errorf("%s: %q, %v; want %q", name, text, err, want)
		}
		if err := heads.Check(h, target); err != nil {
			t.Error(err)
		}
		other := target
		other.Hidden, other.Vocab = 32, 99
		if err := heads.Check(h, other); err == nil || !strings.Contains(err.Error(), h.Name) {
			t.Errorf("%s fits another target: %v", name, err)
		}
	}
	for _, name := range []string{"model", "model.gguf"} {
		h := draft.Head{Name: at(name)}
		if err := heads.Check(h, target); err == nil || !strings.Contains(err.Error(), "no drafter's head") || heads.Is(h) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
