package eagle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	listsynth "github.com/grovellm/grove/internal/drafters/synthetic/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// Each family opens the first head of its version, or the given file, and says what does not fit.
func TestFamilies(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "target.gguf")
	shape, _ := synth.Lookup("tiny-qwen3")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m := Must(model.Open(path, model.Options{Threads: 1}))(t)
	defer m.Close()
	target := As(m)
	target.Shared = new(registry.Shared)
	for i, version := range []int{2, 3, 3} { // those of EAGLE-3 are distinguished by their taps
		c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(uint64(i), 0)), fmt.Sprint("eagle", version),
			m.Config, tensor.F32)
		c.DraftVocab = c.Vocab
		if version == 3 {
			c.Taps = make([]int, i+1)
		}
		h := registry.Head{Name: filepath.Join(dir, "head"+string(rune('0'+i)))}
		if err := headfile.WriteGGUF(h.Name, "head", &c, Must(synthetic.Tensors(&c, tensor.F32, 1))(t), nil, nil,
			tensor.F32); err != nil {
			t.Fatal(err)
		}
		target.Heads = append(target.Heads, h)
	}
	router := filepath.Join(dir, "router")
	if err := listsynth.Write(router, rand.New(rand.NewPCG(1, 1)), m.Config.Vocab, m.Config.Hidden,
		tensor.F32); err != nil {
		t.Fatal(err)
	}
	last := []int{m.Config.Layers}
	of2 := target.Heads[0].Name
	of3 := target.Heads[2].Name
	for text, taps := range map[string][]int{
		"eagle2": last, "eagle3": {0, 0}, "eagle3+text": {0, 0}, "eagle3:tree=linear,k=3": {0, 0},
		"eagle2:tree=best-first,width=3":       last,
		"eagle3:tree=dynamic,k=4,depth=3,n=20": {0, 0}, "eagle3:k=4+text": {0, 0},
		"eagle3:tree=best-first,width=3": {0, 0}, "eagle3:tree=dynatree+text": {0, 0}, "eagle3:tree=fixed": {0, 0},
		"eagle3:model=" + of3: {0, 0, 0}, "eagle2:model=" + of2: last,
		"eagle3+freq:size=64": {0, 0}, "eagle2+context": last, "eagle3+dynaspec:router=" + router: {0, 0},
	} {
		d, err := registry.New(text, target)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := d.Taps(); !slices.Equal(got, taps) {
			t.Errorf("%s taps %v, want the head that taps %v", text, got, taps)
		}
	}
	for text, say := range map[string]string{
		"eagle3:model=" + of2:            "want EAGLE-3",
		"eagle3:tree=oak":                "want one of linear",
		"eagle3:tree=linear,depth=3":     "no such option",
		"eagle3:tree=dynamic,k=0":        "k is 0",
		"eagle2:depth=-1":                "depth is -1",
		"eagle2:tree=dynamic,n=1":        "n is 1",
		"eagle3:preset=paper":            "no such option",
		"eagle3:tree=best-first,width=0": "width is 0",
		"eagle3:model=" + path:           "no EAGLE head",
		"eagle3+dynaspec":                "there is no router",
		"eagle3+freq:size=99999999":      "size=99999999",
	} {
		if _, err := registry.New(text, target); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want an error that says %q", text, err, say)
		}
	}
	target.Heads = target.Heads[:1]
	if _, err := registry.New("eagle3", target); err == nil || !strings.Contains(err.Error(), "no EAGLE-3 head") {
		t.Errorf("without a head: %v", err)
	}
	target.Model = nil
	if _, err := registry.New("eagle2", target); err == nil {
		t.Error("a target without layers to tap was taken")
	}
}
