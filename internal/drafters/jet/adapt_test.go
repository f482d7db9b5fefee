package jet_test

import (
	"testing"

	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"pgregory.net/rapid"
)

// A head learns from the same rows that it drafted with.
func TestReplays(t *testing.T) {
	m := drafttest.OpenTarget(t, 4096)
	drafttest.Replays(t, m.Config.Hidden, 100, func(r *rapid.T) learn.Learner {
		n := genHead(r, m)
		return newDrafter(r, jet.Options{Tree: rapid.SampledFrom([]string{onepass.DDTree, withText,
			onepass.Chain}).Draw(r, "tree")}, n, m).(learn.Learner)
	})
}

func TestLearns(t *testing.T) {
	m := drafttest.OpenTarget(t, 4096)
	for seed, kinds := uint64(0), map[bool]bool{}; len(kinds) < 2; seed++ {
		n := head(t, m, seed)
		if !kinds[n.Causal] {
			kinds[n.Causal] = true
			drafttest.Learns(t, m.Config.Hidden, newDrafter(t, jet.Options{Tree: onepass.DDTree}, n, m).(learn.Learner))
		}
	}
}

// An exported head drafts the same when it is opened again.
func TestExports(t *testing.T) {
	m := drafttest.OpenTarget(t, 4096)
	drafttest.Exports(t, m.Config.Hidden, func(r *rapid.T) (learn.Learner, func(string) learn.Learner) {
		n := genHead(r, m)
		o := genOptions(r, n)
		drafter := func(n *jet.Network) learn.Learner { return newDrafter(r, o, n, m).(learn.Learner) }
		return drafter(n), func(path string) learn.Learner {
			return drafter(drafttest.Must(jet.Open(registry.Head{Name: path}, drafttest.As(m)))(r))
		}
	})
}
