package specblock_test

import (
	"testing"

	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"pgregory.net/rapid"
)

// A head learns from the same rows that it drafted with. Deeper than the first place, this depends
// on which block drafted the path.
func TestReplays(t *testing.T) {
	m := drafttest.OpenTarget(t, 4096)
	drafttest.Replays(t, m.Config.Hidden, 0, func(r *rapid.T) learn.Learner {
		n := genHead(r, m)
		o := genOptions(r, n)
		o.List.Method, o.Cached = "", 0 // replays compute what the head was trained on
		return newDrafter(r, o, n, m).(learn.Learner)
	})
}

func TestLearns(t *testing.T) {
	m := drafttest.OpenTarget(t, 4096)
	o := specblock.DefaultOptions
	o.Widths = "3/3/3/3"
	drafttest.Learns(t, m.Config.Hidden, newDrafter(t, o, head(t, m, 1), m).(learn.Learner))
}

// An exported head drafts the same when it is opened again.
func TestExports(t *testing.T) {
	m := drafttest.OpenTarget(t, 4096)
	drafttest.Exports(t, m.Config.Hidden, func(r *rapid.T) (learn.Learner, func(string) learn.Learner) {
		n := genHead(r, m)
		o := genOptions(r, n)
		o.Text = false     // otherwise trees depend on earlier rounds
		o.List.Method = "" // a shortlist is made from the head that a drafter starts with
		drafter := func(n *specblock.Network) learn.Learner { return newDrafter(r, o, n, m).(learn.Learner) }
		return drafter(n), func(path string) learn.Learner {
			return drafter(drafttest.Must(specblock.Open(registry.Head{Name: path}, drafttest.As(m)))(r))
		}
	})
}
