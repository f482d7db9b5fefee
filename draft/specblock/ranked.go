// Trees as the paper grows them: the rank head sets how many children a place has, and where later
// blocks start.

package specblock

import (
	"math"

	"github.com/grovellm/grove/sample"
)

// attach adds what a pass's blocks say (algorithm 2, lines 6 to 9). Of every block the candidates
// of slot k are children of the likeliest of slot k − 1, the first's of the node that the block
// starts from: as many as the slot's bucket has it. Where that is more than one, a later block may
// start from each of them, on the state of the slot; else from the last, unless the head gave the
// path up.
//
// What two blocks say of the same place is one node: their candidates for it are one list of
// children, which tell tokens apart by nothing else.
func (s *state) attach() {
	s.found = s.found[:0]
	for _, b := range s.blocks[s.fresh:] {
		node, certain, lost := int(b.node), true, false
		for k := range b.slots {
			number := b.rows + k
			bucket := s.rows[number].bucket
			s.below[node] = number
			list := s.candidates(number, node)
			width := min(s.d.widths[bucket], len(list))
			if width == 0 && number == 0 {
				width = min(1, len(list)) // the tree's first node is drafted in any case: it has been paid for
			}
			if width == 0 {
				break
			}
			lost = lost || certain && bucket == RankBuckets-1
			certain = certain && bucket == 0
			parent := node
			for j, c := range list[:width] {
				child := s.add(parent, c.Token, c.LogProb)
				if j == 0 {
					node = child
				}
				if width > 1 || k == b.slots-1 && !lost {
					s.found = append(s.found, block{node: int32(child), from: number})
				}
			}
		}
	}
	s.weigh()
	// What lies below a node is worth no more than the node: blocks start from nodes that would be
	// proposed, and no others.
	for i := range s.found {
		if node := s.found[i].node; s.index[node] >= 0 {
			s.found[i].value = float64(s.worth[node])
		}
	}
}

// candidates are a row's below a node, with +text ranked by the text too.
func (s *state) candidates(number int32, node int) []sample.Candidate {
	r := &s.rows[number]
	if s.Text == nil {
		return r.level
	}
	s.path = s.grown.Path(node, s.path[:0])
	at := s.Text.End()
	for _, n := range s.path {
		at = s.Text.Match(at, s.grown.Token[n])
	}
	s.Text.Keep(s.grown.Len(), s.grown.Len())
	x := s.textRow(number, int(s.grown.Depth[node])+1)
	return s.Text.Candidates(r.level[:0], &s.grown, node, at, &x, false, &s.d.scratch)
}

// weigh values the nodes, and finds the most probable, as many as the budget allows: it
// prunes by the probability of the path, and keeps ancestors.
//
// Two blocks' beliefs in one place, of which each node has the stronger, may add up to more than
// one: then all of them are less.
func (s *state) weigh() {
	t := &s.grown
	s.worth = append(s.worth[:0], make([]float32, t.Len())...) // sums of children's probabilities, to begin with
	for i := 1; i < t.Len(); i++ {
		s.worth[t.Parent[i]] += exp(t.LogProb[i])
	}
	for i := 1; i < t.Len(); i++ {
		if p := s.worth[t.Parent[i]]; p > 1 {
			t.LogProb[i] -= float32(math.Log(float64(p)))
		}
	}
	s.worth[0] = 1
	for i := 1; i < t.Len(); i++ {
		s.worth[i] = s.worth[t.Parent[i]] * s.chance(int(t.Depth[i]), t.LogProb[i])
	}
	s.index = t.Best(&s.draft, s.worth, s.budget, s.depth, s.index)
	s.sum = 0
	for i := 1; i < t.Len(); i++ {
		if s.index[i] >= 0 {
			s.sum += float64(s.worth[i])
		}
	}
}
