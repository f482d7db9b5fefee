package falcon_test

import (
	"math/rand/v2"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// head returns a random head for a target. The seed draws its shape, which change may alter.
func head(t Fataler, m *model.Model, seed uint64, change func(c *falcon.Config)) *falcon.Network {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	kind := []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}[rng.IntN(3)]
	c := synthetic.Config[falcon.Config](rng, "falcon", m.Config, kind)
	if change != nil {
		change(&c)
	}
	return Must(falcon.NewNetwork(c, synthetic.Head(&c, kind, seed), nil, &m.Network))(t)
}

func genHead(r *rapid.T, m *model.Model) *falcon.Network {
	return head(r, m, rapid.Uint64Range(0, 60).Draw(r, "head"), nil)
}

// genShape draws a tree that depends only on the text, not on earlier rounds.
func genShape(r *rapid.T) grow.Shape {
	n := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(r, name) }
	switch n("shape", 0, 4) {
	case 0:
		return &grow.Linear{K: n("k", 1, 9)}
	case 1:
		return &grow.Fixed{D: n("d", 1, 5), B: n("b", 1, 4), Tau: 0.01, N: 64}
	case 2:
		return &grow.BestFirst{Width: n("width", 1, 8), Branch: n("branch", 1, 6), Depth: n("depth", 1, 9)}
	case 3:
		return &grow.Static{Children: [][]int{{3}, {2, 0, 1}, {0, 2, 1}, {1, 1}}}
	}
	return &grow.Dynamic{K: n("k", 1, 7), Depth: n("depth", 0, 7), N: n("n", 2, 60)}
}

// newDrafter returns a drafter with a head, over a shortlist if o names one.
func newDrafter(t Fataler, n *falcon.Network, shape grow.Shape, o shortlist.Options, m *model.Model) draft.Drafter {
	t.Helper()
	lists := Must(registry.Shortlists(o, shortlist.Drafter{
		Pool: m.Pool(), Head: &n.Head, Vocab: n.Vocab, Tokenizer: m.Tokenizer, Embed: n.Embed,
	}, n, As(m)))(t)
	s, text := shape.(withText)
	if text {
		shape = s.Shape
	}
	return Must(falcon.New(n, shape, text, lists, m.Pool()))(t)
}

// withText is a shape with the modifier +text.
type withText struct{ grow.Shape }

func genLists(r *rapid.T, n *falcon.Network) shortlist.Options {
	if rapid.Bool().Draw(r, "all tokens") {
		return shortlist.Options{}
	}
	return shortlist.Options{
		Method: rapid.SampledFrom([]string{"freq", "freq-pa", "context"}).Draw(r, "shortlist"),
		Size:   rapid.IntRange(1, n.Vocab).Draw(r, "size"), Extra: min(32, n.Vocab),
	}
}
