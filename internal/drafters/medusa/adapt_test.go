package medusa_test

import (
	"path/filepath"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/model"
	"pgregory.net/rapid"
)

// learners returns seeds of heads that can learn: those that share an output matrix.
func learners(t Fataler, m *model.Model) (seeds []uint64) {
	for seed := uint64(0); len(seeds) < 12; seed++ {
		if !heads(t, m, seed).OwnOutputs {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// Heads learn from the same rows that they drafted with.
func TestReplays(t *testing.T) {
	m := OpenTarget(t, 4096)
	seeds := learners(t, m)
	Replays(t, m.Config.Hidden, 100, func(r *rapid.T) learn.Learner {
		n := heads(r, m, rapid.SampledFrom(seeds).Draw(r, "heads"))
		tree := rapid.SampledFrom([]string{medusa.Static, withText, medusa.Chain}).Draw(r, "tree")
		return newDrafter(r, medusa.Options{Tree: tree}, n, m).(learn.Learner)
	})
}

func TestLearns(t *testing.T) {
	m := OpenTarget(t, 4096)
	for _, seed := range learners(t, m)[:2] {
		Learns(t, m.Config.Hidden, newDrafter(t, medusa.Options{Tree: medusa.Static}, heads(t, m, seed),
			m).(learn.Learner))
	}
}

// Heads with their own output matrices cannot learn while they serve.
func TestOwnOutputsDoNotLearn(t *testing.T) {
	m := OpenTarget(t, 400)
	for seed := range uint64(20) {
		n := heads(t, m, seed)
		if _, ok := newDrafter(t, medusa.Options{Tree: medusa.Static}, n, m).(learn.Learner); ok == n.OwnOutputs {
			t.Errorf("heads %d, output matrices of their own %v: they can learn: %v", seed, n.OwnOutputs, ok)
		}
	}
}

// Exported heads draft the same when they are opened again.
func TestExports(t *testing.T) {
	m := OpenTarget(t, 4096)
	for _, seed := range learners(t, m) {
		n, o := heads(t, m, seed), medusa.Options{Tree: medusa.Static}
		d := newDrafter(t, o, n, m).(learn.Learner)
		path := filepath.Join(t.TempDir(), "heads.gguf")
		if err := learn.Write(path, "exported", d.Head()); err != nil {
			t.Fatal(err)
		}
		again := newDrafter(t, o, Must(medusa.Open(registry.Head{Name: path}, As(m)))(t), m)
		if err := Same(afterText(t, d, n.Hidden), afterText(t, again, n.Hidden)); err != nil {
			t.Errorf("heads %d: %v", seed, err)
		}
	}
}
