package peagle_test

import (
	"math/rand/v2"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// head returns a random head for a target, of random shape.
func head(t Fataler, m *model.Model, seed uint64) *peagle.Network {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	kind := []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}[rng.IntN(3)]
	c := synthetic.Config[peagle.Config](rng, "", m.Config, kind)
	return Must(peagle.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed), &m.Network))(t)
}

func genHead(r *rapid.T, m *model.Model) *peagle.Network {
	return head(r, m, rapid.Uint64Range(0, 60).Draw(r, "head"))
}

// genOptions draws a tree, with or without a shortlist.
func genOptions(r *rapid.T, n *peagle.Network) peagle.Options {
	o := peagle.Options{
		Tree: rapid.SampledFrom([]string{onepass.DDTree, onepass.DDTree, onepass.AccumLogP, onepass.Chain}).Draw(r,
			"tree"),
		Width: rapid.IntRange(1, 9).Draw(r, "width"), Depth: rapid.IntRange(0, n.Depths).Draw(r, "depth"),
	}
	if rapid.IntRange(0, 2).Draw(r, "all tokens") == 0 {
		o.List = shortlist.Options{Method: rapid.SampledFrom([]string{"freq", "freq-pa"}).Draw(r, "shortlist"),
			Size: rapid.IntRange(1, n.DraftVocab).Draw(r, "size")}
	}
	return o
}

func newDrafter(t Fataler, o peagle.Options, n *peagle.Network, m *model.Model) draft.Drafter {
	t.Helper()
	return Must(peagle.New(o, n, As(m)))(t)
}
