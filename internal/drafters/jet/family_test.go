package jet_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// Every family opens the first head of its kind, or the given file, and says what does not fit.
func TestFamilies(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "target.gguf")
	shape, _ := synth.Lookup("tiny-qwen3")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	vocabulary, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer vocabulary.Close()
	target := As(m)
	target.Shared = new(registry.Shared)
	for i, causal := range []bool{false, true, false, true} { // they are distinguished by their taps
		c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(uint64(i), 0)), "", m.Config, tensor.F32)
		c.Causal, c.Taps = causal, make([]int, i+1)
		weights, err := synthetic.Tensors(&c, tensor.F32, 1)
		if err != nil {
			t.Fatal(err)
		}
		h := registry.Head{Name: filepath.Join(dir, "head"+string(rune('0'+i)))}
		if err := headfile.WriteGGUF(h.Name, "head", &c, weights, nil, vocabulary, tensor.F32); err != nil {
			t.Fatal(err)
		}
		target.Heads = append(target.Heads, h)
	}
	for text, taps := range map[string]int{
		"jetspec": 2, "jetspec:tree=ddtree+text": 2, "jetspec+text": 2, "ddtree+text": 1, "ddtree": 1, "dflash": 1,
		"ddtree:tree=hybrid,width=3,lambda=0.5": 1,
		"jetspec:model=" + target.Heads[3].Name: 4, "ddtree:model=" + target.Heads[2].Name: 3,
		"dflash:depth=1,model=" + target.Heads[2].Name: 3,
	} {
		d, err := registry.New(text, target)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := d.Taps(); !slices.Equal(got, make([]int, taps)) {
			t.Errorf("%s taps %v, want the head with %d taps", text, got, taps)
		}
	}
	for text, say := range map[string]string{
		"jetspec:model=" + target.Heads[0].Name:     "want causal (JetSpec)",
		"jetspec:tree=oak":                          "want one of accum-logp, ddtree",
		"dflash:depth=4000":                         "the tokens that a pass drafts",
		"jetspec:model=" + filepath.Join(dir, "no"): "no such file",
		"jetspec:preset=paper":                      "no such option",
		"jetspec:tree=hybrid":                       "lambda",
		"jet":                                       "there is no",
		"jetspec:width=many":                        "want a value like",
		"jetspec:model=" + path:                     "no block head",
	} {
		if _, err := registry.New(text, target); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want an error that says %q", text, err, say)
		}
	}
	target.Heads = target.Heads[:1]
	if _, err := registry.New("jetspec", target); err == nil ||
		!strings.Contains(err.Error(), "no causal (JetSpec) head") {
		t.Errorf("without a causal head: %v", err)
	}
}
