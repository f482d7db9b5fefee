package peagle_test

import (
	"math/rand/v2"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/peagle"
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
		o := peagle.Options{Tree: rapid.SampledFrom([]string{onepass.DDTree, onepass.Chain}).Draw(r, "tree")}
		return newDrafter(r, o, genHead(r, m), m).(learn.Learner)
	})
}

func TestLearns(t *testing.T) {
	m := OpenTarget(t, 4096)
	n := head(t, m, 0)
	// its output lacks some of the target's tokens, or its last part is small
	for seed := uint64(1); n.Base.Tokens != nil || n.FFN < 48 || n.Layers > 1; seed++ {
		n = head(t, m, seed)
	}
	Learns(t, m.Config.Hidden, newDrafter(t, peagle.Options{Tree: onepass.DDTree}, n, m).(learn.Learner))
}

// An exported head drafts the same when it is opened again.
func TestExports(t *testing.T) {
	m := OpenTarget(t, 4096)
	Exports(t, m.Config.Hidden, func(r *rapid.T) (learn.Learner, func(string) learn.Learner) {
		seed := rapid.Uint64Range(0, 60).Draw(r, "head")
		kind := rapid.SampledFrom([]tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}).Draw(r, "type")
		c := synthetic.Config[peagle.Config](rand.New(rand.NewPCG(seed, 2)), "", m.Config, kind)
		c.Rope.Neighbours = c.Arch == "llama" // the order that files have: another order gives other bits
		n := Must(peagle.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed), &m.Network))(r)
		o := genOptions(r, n)
		o.List = shortlist.Options{} // a shortlist is made from the head as it was opened
		drafter := func(n *peagle.Network) learn.Learner { return newDrafter(r, o, n, m).(learn.Learner) }
		return drafter(n), func(path string) learn.Learner {
			return drafter(Must(peagle.Open(registry.Head{Name: path}, As(m)))(r))
		}
	})
}
