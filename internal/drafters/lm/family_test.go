package lm_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/lm"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

const vocab = 420

// small is the shape of the tests' models.
var small = synth.Shape{
	Name: "small", Arch: "qwen3", Vocab: vocab, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 64,
	Context: 400, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: synth.Qwen2,
}

func openSynth(t *testing.T, s synth.Shape) *model.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// models are a target and a draft model of its kind.
type models struct{ target, draft *model.Model }

func openModels(t *testing.T) models { return models{openSynth(t, small), openSynth(t, small)} }

func (m models) as() registry.Target {
	return registry.Target{Vocab: m.target.Config.Vocab, Context: m.target.Context(), Model: m.target}
}

// A draft model whose tokens differ from the target's is refused with an error that says what differs.
func TestStrangersAreRefused(t *testing.T) {
	m := openModels(t)
	wide, other := small, small
	wide.Vocab = 440
	other.Tokens = "gpt-2"
	bare := &model.Model{Network: m.draft.Network}
	for want, c := range map[string]struct {
		m      *model.Model
		target registry.Target
	}{
		"440 tokens and the target's 420":                   {openSynth(t, wide), m.as()},
		"in the draft model and":                            {openSynth(t, other), m.as()},
		"the draft model has 420 tokens and the target 421": {m.draft, registry.Target{Vocab: 421, Context: 100}},
		"420 tokens and the target 422": {bare,
			registry.Target{Vocab: 422, Context: 100, Model: m.target}},
	} {
		if _, err := lm.New(&grow.Linear{K: 3}, registry.Modifiers{}, c.m, c.target); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
	for _, ok := range []registry.Target{m.as(), {Vocab: vocab, Context: 100}} {
		if _, err := lm.New(&grow.Linear{K: 3}, registry.Modifiers{}, m.draft, ok); err != nil {
			t.Error(err)
		}
	}
}

// Names, presets, and options that are out of range.
func TestFamilies(t *testing.T) {
	m := openModels(t)
	target := m.as()
	target.Draft = m.draft
	for _, text := range []string{
		"linear:k=2", "fixed", "fixed:b=2", "dynatree:tau-h=0.8", "dynatree:d0=3,adapt=false",
		"dynatree:d-max=9,b-root=1", "best-first:width=4", "best-first+text", "dynamic:k=4",
		"linear+text", "fixed+text", "dynatree+text+freq:size=64", "dynamic:k=4 + text",
	} {
		if _, err := registry.New(text, target); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"lm": "there is no", "linear:k=0": "k is 0", "linear:tau=1": "no such option",
		"linear:width=3": "no such option", "linear:preset=paper": "no such option",
		"fixed:b=0": "b is 0", "fixed:tau=NaN": "tau is NaN", "fixed:n=1": "n is 1", "fixed:d=99999": "d is 99999",
		"dynatree:tau-h=0.2": "tau-l", "dynatree:b-max=1": "b-max", "dynatree:d0=9": "d0",
		"dynatree:b-root=65": "b-root", "dynatree:rho-stop=0.6": "rho", "best-first:clues=true": "no such option",
		"dynatree:window=0": "window", "dynamic:n=1": "n is 1", "dynamic:k=65": "k is 65",
		"dynamic:depth=-1": "depth is -1", "linear+dynaspec": "linear takes +text",
		"linear+text+text": "twice", "linear+text:n=3": "no options",
		"linear+freq+context": "one shortlist", "linear+oak": "takes +text",
		"dynatree:eta-h=-1": "eta-h", "dynatree:target=2": "target", "best-first:width=0": "width",
		"best-first:branch=65": "branch", "best-first:depth=0": "depth",
		"linear:model=x.gguf": "no model can be opened",
	} {
		if _, err := registry.New(text, target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", text, err, want)
		}
	}
	if _, err := registry.New("linear", m.as()); err == nil || !strings.Contains(err.Error(), "model=FILE") {
		t.Errorf("without a draft model: %v", err)
	}
	opened := ""
	target.Open = func(path string) (*model.Model, error) { opened = path; return m.draft, nil }
	if _, err := registry.New("fixed:model=dir+a/b+c.gguf,d=2+text", target); err != nil || opened != "dir+a/b+c.gguf" {
		t.Errorf("opened %q: %v", opened, err)
	}
}

func TestShortlistOptions(t *testing.T) {
	m := openModels(t)
	target := m.as()
	target.Draft = m.draft
	for text, ok := range map[string]bool{
		"best-first+freq:size=64":         true,
		"linear+freq-pa":                  true,
		"fixed+context:size=32,extra=100": true,
		"dynatree:d-max=9+freq:size=50":   true,
		"linear+best":                     false,
		"linear+freq:size=100000":         false,
		"linear+freq:size=-1":             false,
		"linear+context:extra=-1":         false,
		"linear+freq:ranks=absent.gguf":   false,
	} {
		if _, err := registry.New(text, target); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
