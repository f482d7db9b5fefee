// The loop's guide as a part sees it.

package merge

import "github.com/grovellm/grove/draft"

// view answers one part's questions about one sequence. It knows what the part's estimates are worth, and what the parts
// before it have proposed already.
type view struct {
	d     *drafter
	s     *state
	part  int
	guide draft.Guide
	asked int // questions about levels in this round
}

// Chance is the guide's, of the merged tree's nodes: it is asked with the part's estimate as this package puts it right.
func (v *view) Chance(depth int, logProb float32) float32 {
	c := v.d.worlds[v.s.world].parts[v.part].of(depth, exp(logProb))
	return v.guide.Chance(depth, log(c))
}

// Part is the guide itself: a part's own parts are not told apart.
func (v *view) Part(int) draft.Guide { return v }

// Deeper passes on what the level would bring to the merged tree. What that tree is expected to get accepted is at
// least what the better of its parts is. And a level brings something only in rounds where no other part
// is right as deep as that, whatever one part's success says about another's: at most 1 − reach. So both
// numbers err towards another level, and no level that pays is left undrafted.
func (v *view) Deeper(expected, more float32) bool {
	t := v.s.trees[v.part]
	// A drafter that adds its nodes at the end is known by its questions, one before each level.
	level := max(v.asked, t.MaxDepth()) + 1
	v.asked++
	if level < len(v.s.reach) {
		more = min(more, 1-v.s.reach[level])
	}
	return v.guide.Part(v.part).Deeper(max(expected, v.s.expected), more)
}
