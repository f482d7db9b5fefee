package specblock_test

import (
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

const vocab = drafttest.Vocab

// head returns a random head for a target, of random shape.
func head(t drafttest.Fataler, m *model.Model, seed uint64) *specblock.Network {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	kind := []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}[rng.IntN(3)]
	c := synthetic.Config[specblock.Config](rng, "specblock", m.Config, kind)
	return drafttest.Must(specblock.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed),
		&m.Network))(t)
}

func genHead(r *rapid.T, m *model.Model) *specblock.Network {
	return head(r, m, rapid.Uint64Range(0, 40).Draw(r, "head"))
}

// genOptions draws trees of all kinds.
func genOptions(r *rapid.T, n *specblock.Network) specblock.Options {
	o := specblock.Options{
		Blocks: rapid.IntRange(1, 4).Draw(r, "blocks"), Widths: rapid.SampledFrom([]string{"2/4/10/0", "2/4/6/4",
			"0/3/0/2"}).Draw(r, "widths"),
		Starts: rapid.SampledFrom([]int{0, 1, 4, 10}).Draw(r, "starts"),
		Nodes:  rapid.SampledFrom([]int{10, 60, 200}).Draw(r, "nodes"),
	}
	if n.RankWidth == 0 || rapid.IntRange(0, 2).Draw(r, "uniformly") == 0 {
		o.Widths = rapid.SampledFrom([]string{"1/1/1/1", "2/2/2/2", "5/5/5/5"}).Draw(r, "uniform")
	}
	o.Cached = rapid.IntRange(0, n.Block).Draw(r, "cached")
	o.Text = rapid.Bool().Draw(r, "text")
	o.List.Method = rapid.SampledFrom([]string{"", "", "freq", "freq-pa", "context"}).Draw(r, "shortlist")
	return o
}

func newDrafter(t drafttest.Fataler, o specblock.Options, n *specblock.Network, m *model.Model) draft.Drafter {
	t.Helper()
	d, err := specblock.New(o, n, drafttest.As(m))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// best has the options of the drafter that auto chooses.
var best = specblock.Options{Blocks: 3, Widths: "2/4/6/4", Starts: 2, Cached: 1, Nodes: 60,
	Modifiers: registry.Modifiers{Text: true}}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }
