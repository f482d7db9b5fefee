package heads_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	routersynth "github.com/grovellm/grove/internal/drafters/synthetic/shortlist"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// Heads of every kind are distinguished in either format, and fit only their target.
func TestKinds(t *testing.T) {
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 1))
	at := func(name string) string { return filepath.Join(dir, name) }
	s, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(synth.Write(t.Context(), at("model.gguf"), s, synth.Options{Seed: 1}),
		synth.WriteHF(t.Context(), at("model"), s, synth.Options{Seed: 1})); err != nil {
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
	j := synthetic.Config[jet.Config](rng, "", target, tensor.F32)
	e3 := synthetic.Config[eagle.Config](rng, "eagle3", target, tensor.F32)
	e2 := synthetic.Config[eagle.Config](rng, "eagle2", target, tensor.F32)
	b := synthetic.Config[specblock.Config](rng, "specblock", target, tensor.F32)
	fc := synthetic.Config[falcon.Config](rng, "falcon", target, tensor.F32)
	fc.Block = 3
	fw := must(synthetic.Tensors(&fc, tensor.F32, 1))
	j.Causal, j.Taps = true, []int{1, 2}
	e3.DraftVocab = 40
	e3.TargetLayers = target.Layers
	e3.Taps = []int{1, 2, 3}
	jw, bw := must(synthetic.Tensors(&j, tensor.F32, 1)), must(synthetic.Tensors(&b, tensor.F32, 1))
	p := synthetic.Config[peagle.Config](rng, "peagle", target, tensor.F32)
	p.Config, p.Depths = e3, 5
	w3, w2 := must(synthetic.Tensors(&e3, tensor.F32, 1)), must(synthetic.Tensors(&e2, tensor.F32, 3))
	wp := must(synthetic.Tensors(&p, tensor.F32, 1))
	n := synthetic.Config[mtp.Config](rng, "mtp", target, tensor.F32)
	n.DraftVocab, n.StateFirst = n.Vocab, false
	nw := must(synthetic.Tensors(&n, tensor.F32, 1))
	if err := errors.Join(
		headfile.WriteGGUF(at("mtp.gguf"), "x", &n, nw, nil, nil, tensor.F32), headfile.WriteFolder(at("mtp"), &n, nw, nil),
		headfile.WriteGGUF(at("peagle.gguf"), "x", &p, wp, synthetic.Tokens(&p, 1), nil,
			tensor.F32), headfile.WriteSpeculators(at("peagle"), &p, wp, synthetic.Tokens(&p, 1), target),
		headfile.WriteGGUF(at("jet.gguf"), "x", &j, jw, nil, nil, tensor.F32), headfile.WriteFolder(at("jet"), &j, jw, nil),
		headfile.WriteGGUF(at("eagle.gguf"), "x", &e3, w3, synthetic.Tokens(&e3, 1), nil, tensor.F32),
		headfile.WriteFolder(at("eagle"), &e3, w3, synthetic.Tokens(&e3, 1)),
		headfile.WriteFolder(at("second"), &e2, w2, nil),
		headfile.WriteGGUF(at("block.gguf"), "x", &b, bw, synthetic.Tokens(&b, 1), nil, tensor.F32),
		headfile.WriteFolder(at("block"), &b, bw, synthetic.Tokens(&b, 1)),
		headfile.WriteGGUF(at("falcon.gguf"), "x", &fc, fw, nil, nil, tensor.F32), headfile.WriteFolder(at("falcon"), &fc, fw,
			nil),
		routersynth.Write(at("router.gguf"), rng, target.Vocab, target.Hidden, tensor.F32),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"jet": "block head, causal (JetSpec)", "jet.gguf": "taps after layers [1 2]", "eagle": "EAGLE-3 head: layers",
		"eagle.gguf": "an output head of 40 tokens",
		"peagle":     "P-EAGLE head: 5 tokens a pass", "peagle.gguf": "P-EAGLE head: 5 tokens a pass",
		"second": "EAGLE-2 head: layers", "block": "SpecBlock head: blocks of", "block.gguf": "SpecBlock head: blocks of",
		"router.gguf": "router of",
		"mtp":         "MTP head: a layer over embedding", "mtp.gguf": "MTP head: a layer over embedding",
		"falcon": "Falcon head: 3 tokens a pass", "falcon.gguf": "Falcon head: 3 tokens a pass",
	} {
		h := registry.Head{Name: at(name)}
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
		h := registry.Head{Name: at(name)}
		if err := heads.Check(h, target); err == nil || !strings.Contains(err.Error(), "not a draft head") || heads.Is(h) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A folder of a model, whatever its architecture, is not a head.
func TestModelsAreNoHeads(t *testing.T) {
	for _, s := range synth.Shapes() {
		if !strings.HasPrefix(s.Name, "tiny-") {
			continue
		}
		dir := filepath.Join(t.TempDir(), s.Name)
		if err := synth.WriteHF(t.Context(), dir, s, synth.Options{Seed: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := heads.Read(registry.Head{Name: dir}); !errors.Is(err, headfile.ErrKind) {
			t.Errorf("%s: %v, want that it is no head", s.Name, err)
		}
	}
}
