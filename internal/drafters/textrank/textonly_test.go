package textrank

import (
	"math"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// rowCost is a guide that believes probabilities. A row costs that many tokens.
type rowCost float32

func (rowCost) Chance(_ int, logProb float32) float32 { return float32(math.Exp(float64(logProb))) }
func (c rowCost) Value(chance float32) float32        { return max(chance-float32(c), 0) }
func (rowCost) Deeper(_, _ float32) bool              { return true }

// The tree from the text alone is the probable part of the tree without rows: all of its paths that
// are probable enough, and no others.
func TestByTextIsTheLikelyPart(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		token := rapid.Int32Range(0, int32(rapid.IntRange(0, 3).Draw(r, "alphabet")))
		n := rapid.IntRange(0, 60).Draw(r, "length")
		p := sample.Params{Temperature: rapid.SampledFrom([]float32{0, 1}).Draw(r, "temperature"), Seed: 3}
		text := NewText(&p, NewModel(), nil)
		text.learn(rapid.SliceOfN(token, n, n).Draw(r, "text"))
		root := token.Draw(r, "root")
		budget := rapid.IntRange(1, 40).Draw(r, "budget")
		depth := rapid.IntRange(0, 12).Draw(r, "depth")
		width := rapid.IntRange(0, 3).Draw(r, "width")

		var b Builder
		got, all := tree.New(root), tree.New(root)
		cost := rowCost(rapid.IntRange(0, 8).Draw(r, "row")) / 16
		b.BuildByText(&draft.Request{Tree: got, Budget: budget, Depth: depth, Guide: cost}, text, width)
		b.Builder.Width = width
		b.Build(all, text, noRows{}, budget, depth)
		sums, want := []float64{0}, tree.New(root)
		for i := 1; i < all.Len(); i++ {
			parent := int(all.Parent[i])
			last := 0.0 // scores as the builder sets them: no later rank is worth more
			for j := range i {
				if all.Parent[j] == all.Parent[i] && j > 0 {
					last = min(last, sums[j]-sums[parent])
				}
			}
			score := math.Log(float64(float32(math.Exp(float64(all.LogProb[i])))))
			sums = append(sums, sums[parent]+min(score, last))
			if sums[i] >= math.Log(float64(cost)/2) {
				want.Append(parent, all.Token[i], all.LogProb[i])
			}
		}
		if got.String() != want.String() {
			r.Fatalf("grew\n%swant\n%s", got, want)
		}
	})
}

// The gain of a first pass is at first a guess, which a few small trees do not overturn, and then what it brought.
func TestFirstPassTakesItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f FirstPass
		before, brings := rapid.Float32Range(0, 5).Draw(t, "before"), rapid.Float32Range(0, 3).Draw(t, "brings")
		if got := f.Gain(before); got != 1 {
			t.Fatalf("%g tokens before there are trees, want 1", got)
		}
		f.Learn(before, before+brings)
		rounding := 2 * float64(math.Nextafter32(before+brings, 9)-(before+brings)) // of the sum, and of the rest
		if got := f.Gain(before); math.Abs(float64(got-1)) > .3*math.Abs(float64(brings-1))+rounding {
			t.Fatalf("%g tokens after one tree that brought %g", got, brings)
		}
		for range 400 {
			f.Learn(before, before+brings)
		}
		if got := f.Gain(before); math.Abs(float64(got-brings)) > .01 {
			t.Fatalf("%g tokens after many trees that brought %g", got, brings)
		}
	})
}
