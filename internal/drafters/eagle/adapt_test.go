package eagle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// A head learns from the same rows that it drafted with.
func TestReplays(t *testing.T) {
	m := OpenTarget(t, 4096)
	Replays(t, m.Config.Hidden, 100, func(r *rapid.T) learn.Learner {
		return newDrafter(r, genHead(r, m), genShape(r), shortlist.Options{}, m).(learn.Learner)
	})
}

func TestLearns(t *testing.T) {
	m := OpenTarget(t, 4096)
	for _, version := range []int{2, 3, eagle.Native} {
		n := head(t, m, version, 0)
		// its output lacks some of the target's tokens, or its last part is small
		for seed := uint64(1); n.Tokens != nil || n.FFN < 48 || n.Layers > 1 && n.Norm == nil; seed++ {
			n = head(t, m, version, seed)
		}
		tree := grow.DefaultDynamic()
		Learns(t, m.Config.Hidden, newDrafter(t, n, &tree, shortlist.Options{}, m).(learn.Learner))
	}
}

// An exported head drafts the same when it is opened again.
func TestExports(t *testing.T) {
	m := OpenTarget(t, 4096)
	Exports(t, m.Config.Hidden, func(r *rapid.T) (learn.Learner, func(string) learn.Learner) {
		seed, shape := rapid.Uint64Range(0, 60).Draw(r, "head"), genShape(r)
		kind := rapid.SampledFrom([]tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}).Draw(r, "type")
		version := rapid.SampledFrom([]int{2, 3, 3}).Draw(r, "version")
		c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(seed, 2)), fmt.Sprint("eagle", version), m.Config,
			kind)
		c.Rope.Neighbours = c.Arch == "llama" // the order that files have: another order gives other bits
		drafter := func(n *eagle.Network) learn.Learner {
			return newDrafter(r, n, shape, shortlist.Options{}, m).(learn.Learner)
		}
		return drafter(Must(eagle.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed),
				&m.Network))(r)), func(path string) learn.Learner {
				return drafter(Must(eagle.Open(registry.Head{Name: path}, As(m)))(r))
			}
	})
}
