package jet_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// head returns a random head for a target, of random shape.
func head(t Fataler, m *model.Model, seed uint64) *jet.Network {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	kind := []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}[rng.IntN(3)]
	c := synthetic.Config[jet.Config](rng, "", m.Config, kind)
	return Must(jet.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed), &m.Network))(t)
}

func genHead(r *rapid.T, m *model.Model) *jet.Network {
	return head(r, m, rapid.Uint64Range(0, 40).Draw(r, "head"))
}

// genOptions draws any tree that does not depend on earlier rounds; most often ddtree, which shows
// the distributions in full.
func genOptions(r *rapid.T, n *jet.Network) jet.Options {
	return jet.Options{
		Tree: rapid.SampledFrom([]string{onepass.DDTree, onepass.DDTree, onepass.AccumLogP, onepass.Hybrid,
			onepass.Entropy, onepass.Chain}).Draw(r, "tree"),
		Width: rapid.IntRange(1, 9).Draw(r, "width"), Depth: rapid.IntRange(0, n.Block-1).Draw(r, "depth"), Lambda: 0.5,
	}
}

func newDrafter(t Fataler, o jet.Options, n *jet.Network, m *model.Model) draft.Drafter {
	t.Helper()
	return Must(jet.New(modified(o), n, As(m)))(t)
}

// withText is the tree ddtree with the modifier +text, which modified handles.
const withText = "ddtree+text"

func modified(o jet.Options) jet.Options {
	if o.Tree == withText {
		o.Tree, o.Text = onepass.DDTree, true
	}
	return o
}

func sameShape(a, b *tree.Tree) error {
	if !slices.Equal(a.Token, b.Token) || !slices.Equal(a.Parent, b.Parent) {
		return fmt.Errorf("trees differ: %v %v, %v %v", a.Token, a.Parent, b.Token, b.Parent)
	}
	return nil
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }
