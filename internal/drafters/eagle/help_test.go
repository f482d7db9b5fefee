package eagle_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// head returns a random head for a target. Its shape is random except for its version.
func head(t Fataler, m *model.Model, version int, seed uint64) *eagle.Network {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	kind := []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}[rng.IntN(3)]
	c := synthetic.Config[eagle.Config](rng, fmt.Sprint("eagle", max(version, 2)), m.Config, kind)
	if version == eagle.Native {
		c.Version, c.StateFirst = eagle.Native, rng.IntN(2) == 0
	}
	return Must(eagle.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed), &m.Network))(t)
}

func genHead(r *rapid.T, m *model.Model) *eagle.Network {
	return head(r, m, rapid.SampledFrom([]int{2, 3, 3, eagle.Native}).Draw(r, "version"),
		rapid.Uint64Range(0, 60).Draw(r, "head"))
}

// genShape draws a tree that depends only on the text, not on earlier rounds.
func genShape(r *rapid.T) grow.Shape {
	n := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(r, name) }
	switch n("shape", 0, 3) {
	case 0:
		return &grow.Linear{K: n("k", 1, 9)}
	case 1:
		return &grow.Fixed{D: n("d", 1, 5), B: n("b", 1, 4), Tau: 0.01, N: 64}
	case 2:
		return &grow.BestFirst{Width: n("width", 1, 8), Branch: n("branch", 1, 6), Depth: n("depth", 1, 9)}
	}
	return &grow.Dynamic{K: n("k", 1, 7), Depth: n("depth", 0, 7), N: n("n", 2, 60)}
}

// newDrafter returns a drafter with a head, over a shortlist if o names one.
func newDrafter(t Fataler, n *eagle.Network, shape grow.Shape, o shortlist.Options, m *model.Model) draft.Drafter {
	t.Helper()
	lists := Must(registry.Shortlists(o, shortlist.Drafter{
		Pool: m.Pool(), Head: &n.Head, Norm: n.Norm, Tokens: n.Tokens, Vocab: n.Vocab, Tokenizer: m.Tokenizer,
		Embed: n.Embed,
	}, n, As(m)))(t)
	s, text := shape.(withText)
	if text {
		shape = s.Shape
	}
	return Must(eagle.New(n, shape, text, lists, m.Pool()))(t)
}

// withText is a shape with the modifier +text.
type withText struct{ grow.Shape }

func genLists(r *rapid.T, n *eagle.Network) shortlist.Options {
	if rapid.Bool().Draw(r, "all tokens") {
		return shortlist.Options{}
	}
	return shortlist.Options{
		Method: rapid.SampledFrom([]string{"freq", "freq-pa", "context"}).Draw(r, "shortlist"),
		Size:   rapid.IntRange(1, n.DraftVocab).Draw(r, "size"), Extra: min(32, n.DraftVocab),
	}
}
