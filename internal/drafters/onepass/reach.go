// How deep a causal block is worth drafting, which must be said before its pass.

package onepass

import (
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/tree"
)

// reach foretells what a level brings: ratio[d−1] is what the tree is expected to get accepted at
// depth d, in tokens, over the same of depth d − 1 (of the root: 1), on average over trees.
type reach struct{ ratio []float32 }

func newReach(depths int) reach {
	return reach{slices.Repeat([]float32{calibrate.FirstChance}, depths)}
}

// deepen asks the guide for every level whether it pays, and returns how many do, at least 1 and at
// most most.
func (r *reach) deepen(g draft.Guide, most int) int {
	level := r.ratio[0]
	expected := g.Value(level)
	for depth := 1; depth < most; depth++ {
		level *= r.ratio[depth]
		more := g.Value(level)
		if !g.Deeper(expected, more) {
			return depth
		}
		expected += more
	}
	return most
}

// learn takes in a tree of a block of so many levels; path[i] is the chance that the target's text
// goes through node i. Levels that were not drafted are taken to be like the last that was: so a
// reach that has become too short grows again.
func (r *reach) learn(t *tree.Tree, path []float32, depth int) {
	before := float32(1)
	for d := 1; d <= len(r.ratio); d++ {
		seen := r.ratio[depth-1]
		if d <= depth {
			level := float32(0)
			for i := range path {
				if int(t.Depth[i]) == d {
					level += path[i]
				}
			}
			level = min(level, before)
			seen = 0
			if before > 0 {
				seen = level / before
			}
			before = level
		}
		r.ratio[d-1] += (seen - r.ratio[d-1]) / calibrate.Memory
	}
}
