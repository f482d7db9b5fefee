// Trees from the text alone, which need no pass of a network, and whether a first pass pays off in
// addition to them.

package textrank

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/tree"
)

// noRows is a drafter without rows.
type noRows struct{}

func (noRows) Row(*tree.Tree, int) (Row, bool) { return Row{}, false }

// BuildByText builds the tree of a request with a guide from the text and the off-path logits only,
// and returns its expected value (Expected).
func (b *Builder) BuildByText(r *draft.Request, text *Text, width int) (expected float32) {
	b.Builder.Width, b.Guide = width, r.Guide
	b.Build(r.Tree, text, noRows{}, r.Budget, r.Depth)
	expected, b.chance = Expected(r.Tree, r.Guide, b.chance)
	return expected
}

// FirstPass learns how many tokens a drafter's passes add to the tree from the text alone, by the
// number of tokens that this tree is expected to get accepted.
type FirstPass struct {
	gain  [len(firstBounds) + 1]float32 // tokens, minus 1
	trees [len(firstBounds) + 1]int
}

// firstBounds separate the classes of expected tokens.
var firstBounds = [...]float32{.25, .5, 1, 2, 4}

func firstClass(expected float32) (i int) {
	for i < len(firstBounds) && expected > firstBounds[i] {
		i++
	}
	return i
}

// Gain returns how many tokens a first pass is expected to add to a tree from the text alone. A guess of 1 counts as
// calibrate.PriorWeight trees: the first ones are small, and a class whose gain looks too small is rarely seen again.
func (f *FirstPass) Gain(expected float32) float32 { return 1 + f.gain[firstClass(expected)] }

// Learn takes the number of tokens that a tree was expected to get accepted from the text alone,
// and with the drafter's passes.
func (f *FirstPass) Learn(before, after float32) {
	i := firstClass(before)
	f.trees[i]++
	f.gain[i] += (after - before - 1 - f.gain[i]) / float32(min(f.trees[i]+calibrate.PriorWeight, 4*calibrate.Memory))
}
