// Trees beyond the paper's: the most probable nodes, where what the blocks say is put right at every node by what followed its path in
// the text, and by what the target said there before (package clues).
//
// A slot's row is meant for the head's own first guesses; below other nodes of its depth it is the best that the head has said, and counts
// for less. After every pass the tree grows anew. The next blocks start where most is at stake and least is known: from likely
// nodes whose likeliest child is not likely.

package specblock

import (
	"github.com/grovellm/grove/internal/clues"
	"github.com/grovellm/grove/tree"
)

// conditioned is a conditioned tree under way.
type conditioned struct {
	text  *clues.Text // nil where trees are not conditioned
	draft tree.Tree
	spots []spot  // of each node of draft
	begun []int32 // of each node of grown, the number of the block that starts from it, -1: none
	all   []start // the blocks, by number
	path  []int32
	heard []clues.Heard // of each of rows, and memory of more
}

// spot is a node as the blocks see it.
type spot struct {
	node   int32 // of grown, where the path is one to a block or a part of it; else -1
	block  int32 // that foretells what comes after it: the one that starts there, or the nearest above
	slot   int32 // of the block's rows; those beyond its last are none
	strays bool  // the path left the block's first guesses
}

// condition grows the tree of all blocks, and finds where more could start.
func (s *state) condition() {
	for _, b := range s.starts {
		s.begun[b.node] = int32(len(s.all))
		b.level = s.blocks
		s.all = append(s.all, b)
	}
	s.regrow(s.budget)
	s.found = s.found[:0]
	for i := range s.draft.Token {
		if x := &s.spots[i]; !x.strays && x.slot < s.all[x.block].slots && s.all[x.block].level == s.blocks {
			s.d.yield[s.warm].learnSure(int(x.slot), s.d.grower.Surest(i))
		}
		s.find(i)
	}
}

// regrow grows the tree of all that is known, up to so many nodes.
func (s *state) regrow(budget int) {
	t := &s.draft
	t.Reset(s.root)
	s.d.grower.Least = 0
	if s.request.Guide != nil {
		s.d.grower.Least = leastGuided
	}
	s.d.grower.Grow(t, s.text, s, budget, s.depth, 0, s.request.Guide)
	s.worth, s.sum = append(s.worth[:0], 1), 0
	for i := 1; i < t.Len(); i++ {
		s.worth = append(s.worth, s.worth[t.Parent[i]]*s.chance(int(t.Depth[i]), t.LogProb[i]))
		s.sum += float64(s.worth[i])
	}
}

// leastGuided is the least chance of a path whose node is proposed where a guide knows what rows cost. What is less likely is cut in
// any case, and finding it would be most of the time of growing a tree.
const leastGuided = 0.01

// find notes a node of the draft as one from which a block might start, if the head has a state that says its token.
func (s *state) find(node int) {
	t := &s.draft
	if node == 0 || s.blocks+1 >= s.d.options.Blocks || int(t.Depth[node]) >= s.depth {
		return
	}
	from, own := &s.spots[t.Parent[node]], &s.spots[node]
	if from.slot >= s.all[from.block].slots || own.slot == 0 {
		return
	}
	value := float64(s.worth[node]) * (1 - s.d.grower.Surest(node))
	if value < leastValue {
		return
	}
	b := &s.all[from.block]
	s.found = append(s.found, start{node: s.reach(node), row: b.row + from.slot, from: b.rows + from.slot, value: value})
}

// leastValue is what a row must be expected to bring, in tokens: less is not worth computing it.
const leastValue = 0.02

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

// Row makes the state a clues.Rows.
func (s *state) Row(t *tree.Tree, node int) (r clues.Row, strays bool) {
	if len(s.all) == 0 { // no block has been computed
		return r, false
	}
	x := spot{}
	if parent := t.Parent[node]; parent >= 0 {
		up, token := &s.spots[parent], t.Token[node]
		x = spot{node: -1, block: up.block, slot: up.slot + 1, strays: up.strays}
		if up.slot < s.all[up.block].slots && !x.strays {
			top := s.rows[s.all[up.block].rows+up.slot].top
			x.strays = len(top) == 0 || top[0].Token != token
		}
		if up.node >= 0 {
			x.node = int32(s.grown.Child(int(up.node), token))
		}
		if x.node >= 0 && s.begun[x.node] >= 0 {
			x.block, x.slot, x.strays = s.begun[x.node], 0, false
		}
	}
	s.spots = append(s.spots[:node], x)
	if x.slot < s.all[x.block].slots {
		number := int(s.all[x.block].rows + x.slot)
		r = clues.Row{
			Level: s.rows[number].level, At: int(x.slot) + 1 + s.all[x.block].level, Head: s, Number: number, Heard: &s.heard[number],
		}
		if s.d.n.RankWidth > 0 {
			r.Rank = s.rows[number].rank[:]
		}
	}
	return r, x.strays
}

// propose copies a tree to the request's.
func (s *state) propose(t *tree.Tree) {
	for i := 1; i < t.Len(); i++ {
		s.request.Tree.Append(int(t.Parent[i]), t.Token[i], t.LogProb[i])
	}
}
