package bench

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// Heads of every kind draft for a model: the kinds for any model, the layer in its own file, and Gemma 4's assistants.
func TestHeadCosts(t *testing.T) {
	both := []string{"eagle3", "eagle2", "peagle", "ddtree", "jetspec", "dspark", "dflash2", "domino", "medusa", "falcon"}
	for name, more := range map[string][]string{"tiny-qwen35": {"mtp"},
		"tiny-gemma4": {"gemma4-assistant", "gemma4-assistant"}} {
		shape, err := synth.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		tune := shape.Tune
		shape.Tune = func(c *model.Config) {
			tune(c)
			if name == "tiny-qwen35" {
				c.Ahead = 1
			}
		}
		path := filepath.Join(t.TempDir(), "model.gguf")
		err = synth.Write(context.Background(), path, shape, synth.Options{Type: tensor.BF16, Seed: 1, Repeat: true})
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Open(path, model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		heads := 0
		r, err := HeadCosts(context.Background(), m, HeadCostOptions{Path: path, Type: tensor.BF16, Committed: 9, Rounds: 1,
			Progress: func(done, _ int) { heads = done }})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range r.Heads {
			got = append(got, h.Drafter)
			own := h.Drafter == "mtp"
			if !(h.MS > 0) || !near(h.Share*h.PlainMS, h.MS) || h.Nodes < 10 || h.Nodes > headBudget || own != (h.Bytes == 0) {
				t.Errorf("%+v", h)
			}
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(append(slices.Clone(both), more...)))
		if !slices.Equal(got, want) || heads != len(want) {
			t.Errorf("%s: %v, %d times told; want %v", name, got, heads, want)
		}
		_, err = HeadCosts(context.Background(), m, HeadCostOptions{Drafters: []string{"hydra"}})
		if err == nil || !strings.Contains(err.Error(), "hydra") {
			t.Errorf("no such head: %v", err)
		}
	}
}
