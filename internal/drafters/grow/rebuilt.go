// The modifier +text: candidates ranked by the text, and best-first trees that are rebuilt with every
// pass.

package grow

import (
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// rebuilt is a best-first tree that is rebuilt after every pass from the text and all rows. The
// state's own tree has the nodes with rows.
type rebuilt struct {
	width int // most children of a node

	lists [][]sample.Candidate // of each node of the state's tree, once it has a row

	tree tree.Tree // the best tree so far
	// Of each of its nodes:
	node  []int32 // its number in the state's tree, -1 if it is not there
	at    []textrank.Place
	free  [][]sample.Candidate // its candidates from the text only
	worth []float32            // its probability from the root, by the guide

	least   float32 // the least worth
	builder treebuild.Builder
	chosen  []int32
	scratch textrank.Scratch

	s *state // while the tree is built
}

// choose expands the most probable nodes without a row, among those that have a parent with one and
// are not too deep.
func (b *rebuilt) choose(s *state, width, depth int) {
	floor := float32(0)
	if b.tree.Len() == s.most { // a new node pushes out the least one
		floor = b.least
	}
	b.chosen = b.chosen[:0]
	for v := range b.tree.Token {
		if b.node[v] >= 0 && s.row[b.node[v]] >= 0 || int(b.tree.Depth[v]) >= min(depth, s.deepest) ||
			b.worth[v] <= floor {
			continue
		}
		if p := b.node[b.tree.Parent[v]]; p >= 0 && s.row[p] >= 0 {
			b.chosen = insert(b.chosen, int32(v), b.worth, width)
		}
	}
	for _, v := range b.chosen {
		parent := b.node[b.tree.Parent[v]]
		n := s.tree.Len()
		if node := s.tree.Append(int(parent), b.tree.Token[v], b.tree.LogProb[v]); node == n {
			s.row = append(s.row, -1)
			s.path = append(s.path, 0)
			s.worth = append(s.worth, 0)
			s.places = append(s.places, b.at[v])
		}
		b.node[v] = int32(s.tree.Child(int(parent), b.tree.Token[v]))
		s.worth[b.node[v]] = b.worth[v]
		s.expand = append(s.expand, b.node[v])
	}
}

// build builds the tree, and returns the sum of its nodes' values without the root's.
func (b *rebuilt) build(s *state) (sum float32) {
	for i, node := range s.expand {
		for len(b.lists) <= int(node) {
			b.lists = append(b.lists, nil)
		}
		b.lists[node] = append(b.lists[node][:0], s.cands[i*s.d.ranked:][:s.count[i]]...)
	}
	b.s = s
	b.tree.Reset(s.tree.Token[0])
	b.node = b.node[:0]
	b.at = b.at[:0]
	b.worth = b.worth[:0]
	b.builder.Width, b.builder.Guide = b.width, s.request.Guide
	b.builder.Build(&b.tree, b, s.most)
	b.builder.Guide, b.s = nil, nil
	b.least = 1
	for v := range b.tree.Token {
		w := float32(1)
		if v > 0 {
			w = b.worth[b.tree.Parent[v]] * s.chance(int(b.tree.Depth[v]), b.tree.LogProb[v])
			sum += treebuild.Value(s.request.Guide, w)
		}
		b.worth = append(b.worth, w)
		b.least = min(b.least, w)
	}
	return sum
}

// Below implements treebuild.Source.
func (b *rebuilt) Below(t *tree.Tree, v int) []sample.Candidate {
	s := b.s
	node, at := int32(0), s.places[0]
	if parent := t.Parent[v]; parent >= 0 {
		at = s.Text.Match(b.at[parent], t.Token[v])
		node = b.node[parent]
		if node >= 0 {
			node = int32(s.tree.Child(int(node), t.Token[v]))
		}
	}
	b.node, b.at = append(b.node, node), append(b.at, at)
	for len(b.free) <= v {
		b.free = append(b.free, make([]sample.Candidate, 0, textrank.CandidatesMost))
	}
	switch {
	case int(t.Depth[v]) >= s.deepest:
		return nil
	case node >= 0 && s.row[node] >= 0:
		return b.lists[node]
	}
	b.free[v] = s.Text.Candidates(b.free[v][:0], t, v, at, &textrank.Row{}, false, &b.scratch)
	return b.free[v]
}

// ranker is a worker's memory for ranking the candidates of a row with +text.
type ranker struct {
	scratch textrank.Scratch
	output  textrank.Output // the row
}

// rank ranks the candidates below a node, in the memory of dst. top has the drafter's first candidates
// there.
func (m *ranker) rank(s *state, node int32, dst, top []sample.Candidate) []sample.Candidate {
	row := textrank.Row{Top: top, Depth: 1, Output: &m.output}
	if !s.d.Model.Keeps() { // rows know less the further they are from the target's hidden states
		row.Depth = int(s.tree.Depth[node]) + 1
	}
	return s.Text.Candidates(dst[:0:min(cap(dst), textrank.CandidatesMost)], &s.tree, int(node), s.places[node], &row,
		false, &m.scratch)
}
