package medusa_test

import (
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// window is the number of rows of a text that the drafter keeps.
const window = 1

// heads returns random heads for a target, of random shape.
func heads(t Fataler, m *model.Model, seed uint64) *medusa.Network {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	kind := []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}[rng.IntN(3)]
	c := synthetic.Config[medusa.Config](rng, "", m.Config, kind)
	return Must(medusa.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed), &m.Network))(t)
}

func genHeads(r *rapid.T, m *model.Model) *medusa.Network {
	return heads(r, m, rapid.Uint64Range(0, 40).Draw(r, "heads"))
}

// genOptions draws a tree that depends only on the text.
func genOptions(r *rapid.T, n *medusa.Network) medusa.Options {
	o := medusa.Options{
		Tree:  rapid.SampledFrom([]string{medusa.Static, medusa.Paper, medusa.BestFirst, medusa.Chain}).Draw(r, "tree"),
		Depth: rapid.IntRange(0, n.Depths).Draw(r, "depth"),
	}
	if o.Tree == medusa.BestFirst {
		o.Width = rapid.IntRange(0, 9).Draw(r, "width")
	}
	return o
}

// withText is the tree best-first with the modifier +text.
const withText = "best-first+text"

func newDrafter(t Fataler, o medusa.Options, n *medusa.Network, m *model.Model) draft.Drafter {
	t.Helper()
	if o.Tree == withText {
		o.Tree, o.Text = medusa.BestFirst, true
	}
	return Must(medusa.New(o, n, As(m)))(t)
}

// exact returns seeds of heads whose products need no rounding.
func exact(t Fataler, m *model.Model) (seeds []uint64) {
	for seed := uint64(0); len(seeds) < 6; seed++ {
		if heads(t, m, seed).Residual[0][0].W.Type() == gemm.F32 {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

var negInf = float32(math.Inf(-1))

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func widen(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

// product computes W·x + b in float64.
func product(l *nn.Linear, x []float64) []float64 {
	y, row := make([]float64, l.W.Out()), make([]float32, l.W.In())
	for i := range y {
		l.W.Row(row, i)
		for j, w := range row {
			y[i] += float64(w) * x[j]
		}
		if l.Bias != nil {
			y[i] += float64(l.Bias[i])
		}
	}
	return y
}
