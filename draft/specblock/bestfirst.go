// Best-first trees, beyond the paper: the most probable nodes of all blocks. With +text they are
// ranked by the text too.
//
// A slot's row is computed for the head's own first candidates. Below other nodes of its depth it
// is the best prediction there is, and counts for less. After every pass the tree is built anew.
// The next blocks start from likely nodes whose first candidate is not likely.

package specblock

import (
	"github.com/grovellm/grove/internal/calibrate"
	"github.com/grovellm/grove/internal/textrank"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// place is what is known of a node of a best-first tree.
type place struct {
	grown  int32 // its node of grown, where the path is one to a block or a part of it; else -1
	row    int32 // the row that predicts what follows it, -1: none
	offTop bool  // the path left the first candidates of the row's block
}

// build builds the tree of all blocks, and finds where more could start.
func (s *state) build() {
	for _, b := range s.blocks[s.fresh:] {
		s.below[b.node] = b.rows
	}
	b, t := &s.d.builder, &s.draft
	b.Width, b.Least, b.Guide = 0, 0, s.request.Guide
	if s.request.Guide != nil {
		b.Least = calibrate.RowCost
	}
	t.Reset(s.root)
	if s.Text != nil {
		b.Build(t, s.Text, s, s.budget, s.depth)
	} else {
		b.Builder.Build(t, s, s.budget)
		b.Guide = nil
	}
	s.worth, s.sum = append(s.worth[:0], 1), 0
	for i := 1; i < t.Len(); i++ {
		s.worth = append(s.worth, s.worth[t.Parent[i]]*s.chance(int(t.Depth[i]), t.LogProb[i]))
		s.sum += float64(s.worth[i])
	}
	s.found = s.found[:0]
	for i, p := range s.places[:t.Len()] {
		if p.row >= int32(s.first) && !p.offTop {
			s.d.yield[s.Warm].learnFirst(int(s.rows[p.row].slot), b.FirstChance(i))
		}
		s.find(i)
	}
}

// find notes a node of the draft as one from which a block might start, if the head has a state for
// its token.
func (s *state) find(node int) {
	t := &s.draft
	if node == 0 || s.passes+1 >= s.d.options.Blocks || int(t.Depth[node]) >= s.depth {
		return
	}
	from, own := s.places[t.Parent[node]].row, s.places[node].row
	if from < 0 || own >= 0 && s.rows[own].slot == 0 { // a block starts there already
		return
	}
	value := float64(s.worth[node]) * (1 - s.d.builder.FirstChance(node))
	if value < calibrate.RowCost {
		return
	}
	at := 0
	s.path = t.Path(node, s.path[:0])
	for _, n := range s.path[1:] {
		at = s.add(at, t.Token[n], 0)
	}
	s.found = append(s.found, block{node: int32(at), from: from, value: value})
}

// locate finds the place of the node that was added last.
func (s *state) locate(t *tree.Tree, node int) *place {
	x := place{row: s.below[0]}
	if parent := t.Parent[node]; parent >= 0 {
		up, token := &s.places[parent], t.Token[node]
		x = place{-1, -1, up.offTop}
		if up.row >= 0 {
			r := &s.rows[up.row]
			if r.slot+1 < s.blocks[r.block].slots {
				x.row = up.row + 1
			}
			x.offTop = x.offTop || len(r.top) == 0 || r.top[0].Token != token
		}
		if up.grown >= 0 {
			x.grown = int32(s.grown.Child(int(up.grown), token))
		}
		if x.grown >= 0 && s.below[x.grown] >= 0 {
			x.row, x.offTop = s.below[x.grown], false
		}
	}
	s.places = append(s.places[:node], x)
	return &s.places[node]
}

// Row is textrank.Rows'.
func (s *state) Row(t *tree.Tree, node int) (r textrank.Row, offTop bool) {
	x := s.locate(t, node)
	if x.row >= 0 {
		r = s.textRow(x.row, int(s.rows[x.row].slot)+1+s.blocks[s.rows[x.row].block].level)
	}
	return r, x.offTop
}

// textRow is a row for ranking by the text.
func (s *state) textRow(number int32, depth int) textrank.Row {
	x := &s.rows[number]
	r := textrank.Row{Top: x.level[:min(len(x.level), textrank.RowMost)], Depth: depth, Output: &x.output,
		Cache: &x.cache}
	if s.d.n.RankWidth > 0 {
		r.Rank = x.rank[:]
	}
	return r
}

// Below is treebuild.Source's, without +text.
func (s *state) Below(t *tree.Tree, node int) []sample.Candidate {
	if x := s.locate(t, node); x.row >= 0 && int(t.Depth[node]) < s.depth {
		return s.rows[x.row].level
	}
	return nil
}
