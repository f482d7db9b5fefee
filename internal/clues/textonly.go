// Trees of the text alone, which cost no pass of a head, and whether a first pass pays beside them.

package clues

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/tree"
)

// leastByText is the least chance of a path whose node is proposed by the text alone: most of what the text holds is never
// worth a row, and finding it would be most of the time.
const leastByText = 0.05

// noHead is a head that says nothing.
type noHead struct{}

func (noHead) Row(*tree.Tree, int) (Row, bool) { return Row{}, false }

// GrowByText grows the tree of a request by the text and the target's asides alone, and returns the number of tokens that
// it is expected to get accepted; 0 where the request has no guide.
func (g *Grower) GrowByText(r *draft.Request, text *Text, width int) (expected float32) {
	if r.Depth < 1 {
		return 0
	}
	g.grow(r.Tree, text, noHead{}, r.Budget, r.Depth, width, r.Guide, leastByText)
	if r.Guide == nil {
		return 0
	}
	return g.expected(r.Tree, r.Guide)
}

// expected is the number of tokens that a tree is expected to get accepted.
func (g *Grower) expected(t *tree.Tree, guide draft.Guide) (sum float32) {
	g.chance = append(g.chance[:0], 1)
	for i := 1; i < t.Len(); i++ {
		p := g.chance[t.Parent[i]] * min(max(guide.Chance(int(t.Depth[i]), t.LogProb[i]), 0), 1)
		g.chance = append(g.chance, p)
		sum += p
	}
	return sum
}

// FirstPass learns how many tokens a head's passes add to the tree of the text alone, by the number that this tree is
// expected to get accepted. It answers before the first pass whether there is much to add.
type FirstPass struct {
	gain  [len(firstBounds) + 1]float32 // tokens
	trees [len(firstBounds) + 1]int
}

// firstBounds part the classes of expected tokens.
var firstBounds = [...]float32{.25, .5, 1, 2, 4}

const (
	firstGain   = 1  // a guess, for a class without trees
	firstMemory = 16 // trees
)

func firstClass(expected float32) (i int) {
	for i < len(firstBounds) && expected > firstBounds[i] {
		i++
	}
	return i
}

// Gain is what a first pass is expected to add to a tree of the text alone, in tokens.
func (f *FirstPass) Gain(expected float32) float32 {
	if i := firstClass(expected); f.trees[i] > 0 {
		return f.gain[i]
	}
	return firstGain
}

// Learn takes the tokens that a tree was expected to get accepted by the text alone, and with the head's passes.
func (f *FirstPass) Learn(before, after float32) {
	i := firstClass(before)
	f.trees[i]++
	f.gain[i] += (after - before - f.gain[i]) / float32(min(f.trees[i], firstMemory))
}
