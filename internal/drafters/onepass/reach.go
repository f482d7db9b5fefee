// Depths of causal blocks: how deep a block is worth drafting, which must be known before its pass.

package onepass

import (
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/tree"
)

// reach predicts the gain of a level. ratio[d−1] is how many tokens of a tree are expected to be
// accepted at depth d, over the same at depth d − 1 (1 for the root), averaged over trees.
type reach struct{ ratio []float32 }

func newReach(depths int) reach {
	return reach{slices.Repeat([]float32{calibrate.FirstChance}, depths)}
}

// deepen asks the guide for each level whether it pays, and returns how many do: at least 1, and at
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

// learn learns from a tree of a block with depth levels. path[i] is the chance that the target's text
// goes through node i. Levels that were not drafted are assumed to be like the last one that was, so
// a reach that has become too short grows again.
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
