package merge

import (
	"math"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/tree"
)

// partGuide is the loop's guide of one sequence as a part sees it.
type partGuide struct {
	d     *drafter
	s     *state
	part  int
	loop  draft.Guide
	asked int // questions about levels in this round
}

// Chance returns the loop's chance for the probability that the merged tree gives the part's node.
func (g *partGuide) Chance(depth int, logProb float32) float32 {
	return g.loop.Chance(depth, g.d.logChance(g.s, g.part, depth, logProb))
}

// Value returns the loop's value.
func (g *partGuide) Value(chance float32) float32 { return g.loop.Value(chance) }

// Deeper asks the loop what the level adds to the merged tree. As many tokens of that tree are
// expected to be accepted as of the best of the parts asked before. The level adds tokens only if
// none of those parts is right to that depth: with probability 1 − reach at most. Both numbers favour
// another level, so no level that pays is refused.
func (g *partGuide) Deeper(expected, more float32) bool {
	// The tree of a drafter that adds its nodes at the end is a root until then; its questions
	// count its levels.
	level := max(g.asked, g.s.trees[g.part].MaxDepth()) + 1
	g.asked++
	if level < len(g.s.reach) {
		more = min(more, 1-g.s.reach[level])
	}
	return batch.Part(g.loop, g.part).Deeper(max(expected, g.s.expected), more)
}

// expect records how many tokens of a part's tree are expected to be accepted, for the guides of the
// parts after it.
func (d *drafter) expect(s *state, t *tree.Tree, g draft.Guide) {
	d.path, d.sum = append(d.path[:0], 1), append(d.sum[:0], 1)
	for i := 1; i < t.Len(); i++ {
		depth := int(t.Depth[i])
		p := d.path[t.Parent[i]] * g.Chance(depth, t.LogProb[i])
		for len(d.sum) <= depth {
			d.sum = append(d.sum, 0)
		}
		d.path = append(d.path, p)
		d.sum[depth] += p
	}
	s.expected = 0
	for depth, p := range d.sum {
		if depth == len(s.reach) {
			s.reach = append(s.reach, 0)
		}
		s.reach[depth] = max(s.reach[depth], min(p, 1))
	}
	for _, p := range s.reach[1:] {
		s.expected += g.Value(p)
	}
}

// logChance returns the logarithm of the measured chance of a part's node.
func (d *drafter) logChance(s *state, part, depth int, logProb float32) float32 {
	p := d.tables[s.class][part].Chances().Of(depth, logProb)
	return float32(math.Log(float64(p)))
}
