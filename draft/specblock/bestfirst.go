// Best-first trees, beyond the paper: the most probable nodes of all blocks. With +text they are
// ranked by the text too.
//
// A slot's row is computed for the head's own first candidates. Below other nodes of its depth it
// is the best prediction there is, and counts for less. After every pass the tree is built anew.
// The next blocks start from likely nodes whose first candidate is not likely.

package specblock

import (
	"math"

	"github.com/grovellm/grove/internal/calibrate"
	"github.com/grovellm/grove/internal/textrank"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// bestFirst is a best-first tree under way.
type bestFirst struct {
	draft   tree.Tree
	inBlock []nodeAt // of each node of draft
	begun   []int32  // of each node of grown, the number of the block that starts from it, -1: none
	all     []start  // the blocks, by number
	path    []int32

	caches []textrank.RowCache // of each of rows, and memory of more
}

// nodeAt is a node's place in the blocks.
type nodeAt struct {
	node   int32 // of grown, where the path is one to a block or a part of it; else -1
	block  int32 // that predicts what follows the node: the one that starts there, or the nearest above
	slot   int32 // of the block's rows; those beyond its last are none
	offTop bool  // the path left the block's first candidates
}

// build builds the tree of all blocks, and finds where more could start.
func (s *state) build() {
	for _, b := range s.starts {
		s.begun[b.node] = int32(len(s.all))
		b.level = s.blocks
		s.all = append(s.all, b)
	}
	t := &s.draft
	t.Reset(s.root)
	least := 0.0
	if s.request.Guide != nil {
		least = calibrate.RowCost
	}
	if s.text != nil {
		b := &s.d.text
		b.Width, b.Least, b.Guide = 0, least, s.request.Guide
		b.Build(t, s.text, s, s.budget, s.depth)
	} else {
		b := &s.d.builder
		b.Least, b.Guide = least, s.request.Guide
		b.Build(t, s, s.budget)
		b.Guide = nil
	}
	s.worth, s.sum = append(s.worth[:0], 1), 0
	for i := 1; i < t.Len(); i++ {
		s.worth = append(s.worth, s.worth[t.Parent[i]]*s.chance(int(t.Depth[i]), t.LogProb[i]))
		s.sum += float64(s.worth[i])
	}
	s.found = s.found[:0]
	for i := range t.Token {
		if x := &s.inBlock[i]; !x.offTop && x.slot < s.all[x.block].slots && s.all[x.block].level == s.blocks {
			s.d.yield[s.warm].learnFirst(int(x.slot), s.firstChance(i))
		}
		s.find(i)
	}
}

// firstChance is the probability of the first candidate below a node of the draft, 0 where there is
// none.
func (s *state) firstChance(node int) float64 {
	if s.text != nil {
		return s.d.text.FirstChance(node)
	}
	x := &s.inBlock[node]
	if x.slot >= s.all[x.block].slots {
		return 0
	}
	level := s.rows[s.all[x.block].rows+x.slot].level
	if len(level) == 0 {
		return 0
	}
	return math.Exp(level[0].Score)
}

// find notes a node of the draft as one from which a block might start, if the head has a state for
// its token.
func (s *state) find(node int) {
	t := &s.draft
	if node == 0 || s.blocks+1 >= s.d.options.Blocks || int(t.Depth[node]) >= s.depth {
		return
	}
	from, own := &s.inBlock[t.Parent[node]], &s.inBlock[node]
	if from.slot >= s.all[from.block].slots || own.slot == 0 {
		return
	}
	value := float64(s.worth[node]) * (1 - s.firstChance(node))
	if value < calibrate.RowCost {
		return
	}
	b := &s.all[from.block]
	s.found = append(s.found, start{node: s.reach(node), row: b.row + from.slot, from: b.rows + from.slot,
		value: value})
}

// reach is the node of grown that a node of the draft is; there is one from now on.
func (s *state) reach(node int) int32 {
	s.path = s.draft.Path(node, s.path[:0])
	at := 0
	for _, n := range s.path[1:] {
		at = s.grown.Append(at, s.draft.Token[n], 0)
		if at == len(s.begun) {
			s.begun = append(s.begun, -1)
		}
	}
	return int32(at)
}

// locate finds the place of the node that was added last.
func (s *state) locate(t *tree.Tree, node int) *nodeAt {
	x := nodeAt{}
	if parent := t.Parent[node]; parent >= 0 {
		up, token := &s.inBlock[parent], t.Token[node]
		x = nodeAt{node: -1, block: up.block, slot: up.slot + 1, offTop: up.offTop}
		if up.slot < s.all[up.block].slots && !x.offTop {
			top := s.rows[s.all[up.block].rows+up.slot].top
			x.offTop = len(top) == 0 || top[0].Token != token
		}
		if up.node >= 0 {
			x.node = int32(s.grown.Child(int(up.node), token))
		}
		if x.node >= 0 && s.begun[x.node] >= 0 {
			x.block, x.slot, x.offTop = s.begun[x.node], 0, false
		}
	}
	s.inBlock = append(s.inBlock[:node], x)
	return &s.inBlock[node]
}

// Row is textrank.Rows'.
func (s *state) Row(t *tree.Tree, node int) (r textrank.Row, offTop bool) {
	if len(s.all) == 0 { // no block has been computed
		return r, false
	}
	x := s.locate(t, node)
	if b := &s.all[x.block]; x.slot < b.slots {
		r = s.textRow(int(b.rows+x.slot), int(x.slot)+1+b.level)
	}
	return r, x.offTop
}

// textRow is a row for ranking by the text.
func (s *state) textRow(number, depth int) textrank.Row {
	x := &s.rows[number]
	r := textrank.Row{Top: x.level[:min(len(x.level), textrank.RowMost)], Depth: depth, Output: &x.output,
		Cache: &s.caches[number]}
	if s.d.n.RankWidth > 0 {
		r.Rank = x.rank[:]
	}
	return r
}

// Below is treebuild.Source's, without +text.
func (s *state) Below(t *tree.Tree, node int) []sample.Candidate {
	x := s.locate(t, node)
	if b := &s.all[x.block]; x.slot < b.slots && int(t.Depth[node]) < s.depth {
		return s.rows[b.rows+x.slot].level
	}
	return nil
}
