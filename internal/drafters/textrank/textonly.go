// Trees of the text alone, which cost no pass of a network, and whether a first pass pays beside
// them.

package textrank

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/tree"
)

// noRows is a drafter without rows.
type noRows struct{}

func (noRows) Row(*tree.Tree, int) (Row, bool) { return Row{}, false }

// BuildByText builds the tree of a request with a guide by the text and the off-path logits alone, and returns what it
// is expected to bring (Expected).
func (b *Builder) BuildByText(r *draft.Request, text *Text, width int) (expected float32) {
	b.Builder.Width, b.Guide = width, r.Guide
	b.Build(r.Tree, text, noRows{}, r.Budget, r.Depth)
	expected, b.chance = Expected(r.Tree, r.Guide, b.chance)
	return expected
}

// FirstPass learns how many tokens a drafter's passes add to the tree of the text alone, by the
// number that this tree is expected to get accepted.
type FirstPass struct {
	gain  [len(firstBounds) + 1]float32 // tokens, less 1
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

// Gain is what a first pass is expected to bring beside a tree of the text alone, in tokens. A guess of 1 counts as
// calibrate.PriorWeight trees: the first ones are small, and a class whose gain looks too small is seldom seen again.
func (f *FirstPass) Gain(expected float32) float32 { return 1 + f.gain[firstClass(expected)] }

// Learn takes the tokens that a tree was expected to get accepted by the text alone, and with the
// drafter's passes.
func (f *FirstPass) Learn(before, after float32) {
	i := firstClass(before)
	f.trees[i]++
	f.gain[i] += (after - before - 1 - f.gain[i]) / float32(min(f.trees[i]+calibrate.PriorWeight, 4*calibrate.Memory))
}
