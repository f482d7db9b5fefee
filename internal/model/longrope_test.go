package model_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// A draft model never reads longer texts than its target: within the original context it uses the
// factors for short contexts, as the target does, whatever its own context is.
func TestLongropeOfADraftModel(t *testing.T) {
	shape, err := synth.Lookup("tiny-longrope")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	open := func(o model.Options) *model.Model {
		m, err := model.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	text := []int32{3, 250, 17, 390, 101, 3, 42, 8}
	whole := open(model.Options{Threads: 1})
	short := open(model.Options{Threads: 1, Context: 300})
	draft := open(model.Options{Workers: short})
	if draft.Context() != whole.Context() || !sameBits(read(t, draft, text), read(t, short, text)) {
		t.Error("a draft model rotates positions otherwise than its target of the same file, with a short context")
	}
	if !sameBits(read(t, open(model.Options{Workers: whole}), text), read(t, whole, text)) {
		t.Error("a draft model rotates positions otherwise than its target of the same file")
	}
}
