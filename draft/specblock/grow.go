// A tree under way, whichever way it grows.

package specblock

import (
	"cmp"
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/calibrate"
	"github.com/grovellm/grove/internal/treebuild"
	"github.com/grovellm/grove/tree"
)

// growth is a tree under way.
type growth struct {
	request *draft.Request
	budget  int

	expectedByText float32 // tokens that the tree of the text alone is expected to bring
	depth          int     // of nodes at most
	take           int     // entries of a pass over the text

	layout Layout // rows: those of text that were pending, then those of blocks
	trunk  int    // of text

	passes int     // so far
	blocks []block // of all passes
	rows   []row   // theirs
	fresh  int     // of the pass under way, the first of blocks
	first  int     // the first of rows
	inPass int     // and its number among the rows of all sequences

	starts []block // of the next pass
	found  []block // blocks that might start after this pass
	staked float64 // what the blocks of the pass under way were worth

	grown tree.Tree // ranked: all nodes found so far; best-first: the paths to blocks
	below []int32   // of each node of grown, the row of its candidates, -1: none; best-first: of nodes alone that a block starts from
	draft tree.Tree // the nodes that would be proposed
	worth []float32 // of each node of grown, or of a best-first draft: the chance that the target's text goes through it
	sum   float64   // of the worths of the nodes that would be proposed

	index  []int32 // ranked: of each node of grown, its place in draft; -1: none
	places []place // best-first: of each node of draft
	path   []int32
}

// grow makes the tree of what is known after another pass.
func (s *state) grow() {
	before := s.sum
	if s.d.options.Tree == BestFirst {
		s.build()
	} else {
		s.attach()
	}
	if s.passes++; s.passes > 1 {
		s.d.yield[s.Warm].learn(s.passes-1, s.staked, s.sum-before)
	}
}

// add is the node of grown for a token below another; there is one from now on.
func (s *state) add(parent int, token int32, logProb float32) int {
	node := s.grown.Append(parent, token, logProb)
	if node == len(s.below) {
		s.below = append(s.below, -1)
	}
	return node
}

// goOn chooses the starts of the next block, those of the most value of what was found, and says
// whether it pays.
func (s *state) goOn() bool {
	s.starts = s.starts[:0]
	if s.passes < s.d.options.Blocks {
		for _, b := range s.found {
			b.slots = s.worthwhile(&b)
			if int(s.grown.Depth[b.node]) < s.depth && b.value > 0 &&
				!slices.ContainsFunc(s.starts, func(o block) bool { return o.node == b.node }) {
				s.starts = append(s.starts, b)
			}
		}
	}
	slices.SortStableFunc(s.starts, func(a, b block) int { return cmp.Compare(b.value, a.value) })
	if most := s.d.options.Starts; most > 0 && len(s.starts) > most {
		s.starts = s.starts[:most]
	}
	s.staked = 0
	for _, b := range s.starts {
		s.staked += b.value
	}
	if len(s.starts) == 0 {
		return false
	}
	g := s.request.Guide
	return g == nil || g.Deeper(float32(s.sum), float32(s.d.yield[s.Warm].gain(s.passes, s.staked)))
}

// worthwhile is how many slots of a block from b are worth their rows. A ranked tree has whole
// blocks. Without a guide a tree does not depend on trees before: so nothing is learned of them.
func (s *state) worthwhile(b *block) int32 {
	most := min(s.depth-int(s.grown.Depth[b.node]), s.d.n.Block)
	if s.d.options.Tree == BestFirst {
		y := &s.d.guess
		if s.request.Guide != nil {
			y = &s.d.yield[s.Warm]
		}
		most = min(most, y.slots(b.value, calibrate.RowCost))
	}
	return int32(most)
}

// chance is the probability that a node is accepted if its parent is.
func (s *state) chance(depth int, logProb float32) float32 {
	return treebuild.Chance(s.request.Guide, depth, logProb)
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }
