package model_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// A file says for every layer whether it is recurrent, even if the shape lists only the first layers, or none.
func TestRecurrentLayersInFiles(t *testing.T) {
	for _, name := range []string{"tiny-qwen35", "tiny-qwen35moe", "tiny-qwen3next"} {
		for _, list := range [][]bool{{}, {false}, {true}, {false, true}, {true, false, true}} {
			s, err := synth.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			s.Layers = 3
			tune := s.Tune
			s.Tune = func(c *model.Config) {
				tune(c)
				c.Recurrent = list
			}
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := synth.Write(t.Context(), path, s, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
				t.Fatal(err)
			}
			m, err := model.Open(path, model.Options{Threads: 1})
			if err != nil {
				t.Errorf("%s, %v: %v", name, list, err)
				continue
			}
			want := make([]bool, s.Layers)
			copy(want, list)
			if got := m.Config.Recurrent; !slices.Equal(got, want) {
				t.Errorf("%s, %v: the file says %v", name, list, got)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
