// A tree under way, whichever way it grows.

package specblock

import (
	"cmp"
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/calibrate"
	"github.com/grovellm/grove/internal/textrank"
	"github.com/grovellm/grove/sample"
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

	starts []start // the blocks of the pass under way, or of the next
	found  []start // where blocks might start after it
	staked float64 // what the starts of the pass under way were worth
	blocks int     // grown by

	rows  []row              // of all blocks
	tops  []sample.Candidate // theirs
	cands []sample.Candidate
	first int // of the pass's rows, the first of rows

	// ranked: all nodes found so far, of which the likeliest are proposed; best-first: the paths to blocks
	grown tree.Tree
	worth []float32 // of each node of the tree: the chance that the target's text goes through it
	sum   float64   // of the worths of the nodes that would be proposed
	best  tree.Tree // ranked: the nodes that would be proposed
	index []int32   // ranked: of each node of grown, its place in best; -1: none
	below []int32   // ranked: of each node of grown, the row of its candidates; -1, or beyond its end: none

	bestFirst
	text *textrank.Text // of +text; nil without it
}

// start is where a block starts.
type start struct {
	node  int32   // of grown, below which its first row's candidates are; the block's token is the node's
	row   int32   // of the layout: before its pass the row that it starts from, then its first
	from  int32   // of rows: the one that it starts from
	rows  int32   // of rows: its first
	slots int32   // of its rows, as many are computed
	value float64 // what it is worth to start there
	level int     // passes before its own
}

// grow makes the tree of what is known after another pass.
func (s *state) grow() {
	before := s.sum
	if s.d.options.Tree == BestFirst {
		s.build()
	} else {
		s.attach()
	}
	if s.blocks++; s.blocks > 1 {
		s.d.yield[s.warm].learn(s.blocks-1, s.staked, s.sum-before)
	}
}

// goOn chooses the starts of the next block, those of the most value of what was found, and says
// whether it pays.
func (s *state) goOn() bool {
	s.starts = s.starts[:0]
	if s.blocks < s.d.options.Blocks {
		for _, b := range s.found {
			b.slots = s.worthwhile(&b)
			if int(s.grown.Depth[b.node]) < s.depth && b.value > 0 &&
				!slices.ContainsFunc(s.starts, func(o start) bool { return o.node == b.node }) {
				s.starts = append(s.starts, b)
			}
		}
	}
	slices.SortStableFunc(s.starts, func(a, b start) int { return cmp.Compare(b.value, a.value) })
	if most := s.d.options.Starts; most > 0 && len(s.starts) > most {
		s.starts = s.starts[:most]
	}
	s.staked = 0
	for _, b := range s.starts {
		s.staked += b.value
	}
	more := 0.0
	if len(s.starts) > 0 {
		more = s.d.yield[s.warm].gain(s.blocks, s.staked)
	}
	g := s.request.Guide
	return len(s.starts) > 0 && (g == nil || g.Deeper(float32(s.sum), float32(more)))
}

// worthwhile is how many slots of a block from b are worth their rows. A ranked tree has whole
// blocks. Without a guide a tree does not depend on trees before: so nothing is learned of them.
func (s *state) worthwhile(b *start) int32 {
	most := min(s.depth-int(s.grown.Depth[b.node]), s.d.n.Block)
	if s.d.options.Tree == BestFirst {
		y := &s.d.guess
		if s.request.Guide != nil {
			y = &s.d.yield[s.warm]
		}
		most = min(most, y.slots(b.value, calibrate.RowCost))
	}
	return int32(most)
}

// chance is the probability that a node is accepted if its parent is.
func (s *state) chance(depth int, logProb float32) float32 {
	p := exp(logProb)
	if g := s.request.Guide; g != nil {
		p = g.Chance(depth, logProb)
	}
	if !(p > 0) { // NaN too
		return 0
	}
	return min(p, 1)
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

// finish proposes the tree.
func (s *state) finish() {
	if s.request.Guide != nil && s.text != nil {
		s.d.firstPass[s.warm].Learn(s.expectedByText, float32(s.sum))
	}
	if s.d.options.Tree == BestFirst {
		s.request.Tree.Copy(&s.draft)
	} else {
		s.request.Tree.Copy(&s.best)
	}
}
