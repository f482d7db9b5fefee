package drafttest

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// FileTarget returns a small random model and its file.
func FileTarget(t testing.TB) (*model.Model, *gguf.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target.gguf")
	s := Must(synth.Lookup("tiny-qwen3"))(t)
	if err := synth.Write(t.Context(), path, s, synth.Options{Type: tensor.Q8_0, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m := Must(model.Open(path, model.Options{Threads: 1}))(t)
	t.Cleanup(func() { m.Close() })
	f := Must(gguf.Open(path))(t)
	t.Cleanup(func() { f.Close() })
	return m, f
}

// FuzzHead changes bytes of a head's file, within the first few thousand, which have the keys and
// the places of tensors. Opening it must fail with an error that names the file, or succeed with a
// head that drafts, which is passed to use.
func FuzzHead[H any](f *testing.F, m *model.Model, data []byte, open func(registry.Head, registry.Target) (H, error),
	use func(*testing.T, H)) {
	const head = 4000
	rng := rand.New(rand.NewPCG(6, 6))
	f.Add(uint32(0), byte(0))
	for range 40 {
		f.Add(rng.Uint32(), byte(rng.Uint32()))
	}
	f.Fuzz(func(t *testing.T, at uint32, value byte) {
		bad := slices.Clone(data)
		bad[int(at)%min(head, len(bad))] = value
		h, err := open(registry.Head{Name: "damaged", Data: bad}, As(m))
		if err != nil {
			if !strings.Contains(err.Error(), "damaged") {
				t.Fatalf("an error that does not name the file: %v", err)
			}
			return
		}
		use(t, h)
	})
}

// TakesTheFirst checks that drafters run the first of the target's heads that choose accepts, which
// is heads[wanted], and share one copy of it.
func TakesTheFirst[H comparable](t *testing.T, target registry.Target, heads []registry.Head, wanted int,
	choose func(registry.Target) (H, error), open func(registry.Head, registry.Target) (H, error)) {
	t.Helper()
	target.Shared, target.Heads = &registry.Shared{}, nil
	if _, err := choose(target); err == nil || !strings.Contains(err.Error(), "model=FILE") {
		t.Errorf("no heads: %v", err)
	}
	target.Heads = heads
	h := Must(choose(target))(t)
	for i := wanted; i < len(heads); i++ {
		if again := Must(open(heads[i], target))(t); (again == h) != (i == wanted) {
			t.Errorf("head %d of %d is the one that drafts: %v, want number %d", i, len(heads), again == h, wanted)
		}
	}
}
