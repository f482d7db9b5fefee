package eagle_test

import (
	"testing"

	"github.com/grovellm/grove/draft/grow"
	"github.com/grovellm/grove/draft/learn"
	. "github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/shortlist"
	"pgregory.net/rapid"
)

// What a head learns from is what it drafted with.
func TestReplays(t *testing.T) {
	m := OpenTarget(t, 4096)
	Replays(t, m.Config.Hidden, 100, func(r *rapid.T) learn.Learner {
		return newDrafter(r, genHead(r, m), genShape(r), shortlist.Options{}, m).(learn.Learner)
	})
}

func TestLearns(t *testing.T) {
	m := OpenTarget(t, 4096)
	for version := 2; version <= 3; version++ {
		n := head(t, m, version, 0)
		for seed := uint64(1); n.Tokens != nil || n.FFN < 48; seed++ { // its output is not all that the target says, or its last part is small
			n = head(t, m, version, seed)
		}
		tree := grow.DefaultDynamic()
		Learns(t, m.Config.Hidden, newDrafter(t, n, &tree, shortlist.Options{}, m).(learn.Learner))
	}
}
