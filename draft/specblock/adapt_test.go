package specblock_test

import (
	"testing"

	"github.com/grovellm/grove/draft/learn"
	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/internal/drafttest"
	"pgregory.net/rapid"
)

// What a head learns from is what it drafted with; deeper than the first place it depends on which block drafted the path.
func TestReplays(t *testing.T) {
	m := drafttest.OpenTarget(t, 4096)
	drafttest.Replays(t, m.Config.Hidden, 0, func(r *rapid.T) learn.Learner {
		n := genHead(r, m)
		o := genOptions(r, n)
		o.Method, o.Cached = "", 0 // replays are as the head was trained
		return newDrafter(r, o, n, m).(learn.Learner)
	})
}

func TestLearns(t *testing.T) {
	m := drafttest.OpenTarget(t, 4096)
	o := specblock.DefaultOptions
	o.Uniform = 3
	drafttest.Learns(t, m.Config.Hidden, newDrafter(t, o, head(t, m, 1), m).(learn.Learner))
}
