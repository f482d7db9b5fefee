package autograd

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
)

// A product over two matrices side by side, each with its own norm or none, equals to the bit the
// product over one matrix that joins them. Its gradient flows to both, although they are
// overwritten after they are read.
func TestWith(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		n := rapid.IntRange(1, 90).Draw(t, "rows")
		in := rapid.IntRange(1, 40).Draw(t, "in")
		with := rapid.IntRange(1, 40).Draw(t, "with")
		x, y := g.source(t, r, "x", n, in), g.source(t, r, "y", n, with)
		norms := [2]*nn.Norm{}
		for i, width := range []int{in, with} {
			if rapid.Bool().Draw(t, "normed") {
				norms[i] = g.norm(string(rune('a'+i)), width, rapid.Bool().Draw(t, "centred"))
			}
		}
		l := g.linear(t, r, "w", rapid.IntRange(1, 50).Draw(t, "out"), in+with, rapid.Bool().Draw(t, "bias"))
		g.run = func() nn.Mat {
			src := nn.Source{X: x(), Norm: norms[0], With: y(), WithNorm: norms[1]}
			out := g.exec.Mat(new(nn.Buffer), n, l.W.Out())
			g.exec.Linear(src, nn.Proj{Linear: &l, Dst: out})
			for i := range n {
				clear(src.X.Row(i))
				clear(src.With.Row(i))
			}
			return out
		}
		g.draw(r)
		g.check(t, r)

		g.tape.Detach()
		got, both := g.run(), nn.NewMat(n, in+with)
		g.exec.Normalise(norms[0], x(), both.Columns(0, in))
		g.exec.Normalise(norms[1], y(), both.Columns(in, in+with))
		want := nn.NewMat(n, l.W.Out())
		g.exec.Linear(nn.Source{X: both}, nn.Proj{Linear: &l, Dst: want})
		for i := range n {
			if !slices.Equal(got.Row(i), want.Row(i)) {
				t.Fatalf("row %d is %v, of one matrix %v", i, got.Row(i), want.Row(i))
			}
		}
	})
}

func TestNormaliseGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 8))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		n, cols := rapid.IntRange(1, 150).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "cols")
		x := g.source(t, r, "x", n, cols)
		var norm *nn.Norm
		if rapid.IntRange(0, 3).Draw(t, "copy") > 0 {
			norm = g.norm("norm", cols, rapid.Bool().Draw(t, "centred"))
		}
		inPlace := norm != nil && rapid.Bool().Draw(t, "in place")
		g.run = func() nn.Mat {
			src := x()
			if inPlace {
				g.exec.Normalise(norm, src, src)
				return src
			}
			dst := g.exec.Mat(new(nn.Buffer), n, cols)
			g.exec.Normalise(norm, src, dst)
			for i := range n {
				clear(src.Row(i))
			}
			return dst
		}
		g.draw(r)
		g.check(t, r)
	})
}
