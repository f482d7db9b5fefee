// What a sequence's text and target tell beside the drafter, and the trees grown by all of it.

package grow

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/clues"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
	"github.com/grovellm/grove/tree"
)

// known is what a sequence's best-first trees go by, and the tree under way. The state's own tree has the nodes with rows.
type known struct {
	text *clues.Text

	// Of each node of the state's tree:
	places []clues.Place        // the longest match of its path
	lists  [][]sample.Candidate // its candidates, once it has a row

	grown tree.Tree // the best tree so far
	// Of each of its nodes:
	own   []int32 // its number in the state's tree, -1 if it is not there
	at    []clues.Place
	free  [][]sample.Candidate // its candidates by the text alone
	worth []float32            // its probability from the root, as the guide has it

	least   float32 // the least worth
	best    clues.MostProbable
	s       *state // while it grows
	chosen  []int32
	scratch clues.Scratch
}

// choose has the likeliest nodes without a row expanded, of those whose parents have one and that are not too deep.
func (k *known) choose(s *state, width, depth int) {
	floor := float32(0)
	if k.grown.Len() == s.most { // what comes in pushes out the least
		floor = k.least
	}
	k.chosen = k.chosen[:0]
	for v := range k.grown.Token {
		if k.own[v] >= 0 && s.row[k.own[v]] >= 0 || int(k.grown.Depth[v]) >= min(depth, s.deepest) || k.worth[v] <= floor {
			continue
		}
		if p := k.own[k.grown.Parent[v]]; p >= 0 && s.row[p] >= 0 {
			k.chosen = insert(k.chosen, int32(v), k.worth, width)
		}
	}
	for _, v := range k.chosen {
		parent := k.own[k.grown.Parent[v]]
		n := s.tree.Len()
		if node := s.tree.Append(int(parent), k.grown.Token[v], k.grown.LogProb[v]); node == n {
			s.row, s.path, s.worth = append(s.row, -1), append(s.path, 0), append(s.worth, 0)
			k.place(k.at[v])
		}
		k.own[v] = int32(s.tree.Child(int(parent), k.grown.Token[v]))
		s.worth[k.own[v]] = k.worth[v]
		s.expand = append(s.expand, k.own[v])
	}
}

// place notes the match of a new node of the state's tree.
func (k *known) place(at clues.Place) {
	k.places = append(k.places, at)
	if len(k.lists) < len(k.places) {
		k.lists = append(k.lists, make([]sample.Candidate, 0, clues.KeptMost+clues.AsideRoom))
	}
}

// begin readies a tree.
func (k *known) begin(root int32) {
	k.places = k.places[:0]
	k.place(k.text.Match(k.text.End(), root))
}

// regrow grows the tree by what is known now, and returns the sum of its nodes' worth, the root left out.
func (k *known) regrow(s *state) (sum float32) {
	k.s = s
	k.grown.Reset(s.tree.Token[0])
	k.own, k.at, k.worth = k.own[:0], k.at[:0], k.worth[:0]
	k.best.Guide = s.request.Guide
	k.best.Grow(&k.grown, k, s.most)
	k.best.Guide = nil
	k.s = nil
	k.least = 1
	for v := range k.grown.Token {
		w := float32(1)
		if v > 0 {
			w = k.worth[k.grown.Parent[v]] * s.chance(int(k.grown.Depth[v]), k.grown.LogProb[v])
			sum += w
		}
		k.worth = append(k.worth, w)
		k.least = min(k.least, w)
	}
	return sum
}

// Below makes the candidates of the node that was added last; see clues.Source.
func (k *known) Below(t *tree.Tree, node int) []sample.Candidate {
	s := k.s
	own, at := int32(0), k.places[0]
	if parent := t.Parent[node]; parent >= 0 {
		at = k.text.Match(k.at[parent], t.Token[node])
		if own = k.own[parent]; own >= 0 {
			own = int32(s.tree.Child(int(own), t.Token[node]))
		}
	}
	k.own, k.at = append(k.own, own), append(k.at, at)
	for len(k.free) <= node {
		k.free = append(k.free, make([]sample.Candidate, 0, clues.KeptMost+clues.AsideRoom))
	}
	depth := int(t.Depth[node]) + 1
	list := k.free[node][:0]
	switch {
	case depth > s.deepest:
	case own >= 0 && s.row[own] >= 0:
		list = k.lists[own]
	default:
		list = k.text.Candidates(list[:0:clues.KeptMost], t.Token[0], at, depth, &clues.Row{}, false, &k.scratch)
		list = k.text.Asides.Weigh(k.free[node][:len(list)], t, node)
		k.free[node] = list
	}
	return list
}

// judge makes the candidates of a node of the state's tree that has got a row: level is the drafter's first below it.
func (k *known) judge(s *state, node int32, level []sample.Candidate, m *judging) {
	depth := int(s.tree.Depth[node]) + 1
	row := clues.Row{Level: level, At: 1, Head: m}
	if !s.d.Model.Keeps() { // the further from the target's taps the less it knows
		row.At = depth
	}
	list := k.lists[node][:0:clues.KeptMost]
	list = k.text.Candidates(list, s.tree.Token[0], k.places[node], depth, &row, false, &m.scratch)
	k.lists[node] = k.text.Asides.Weigh(k.lists[node][:len(list)], &s.tree, int(node))
}

// judging is a worker's memory for judging a row.
type judging struct {
	scratch clues.Scratch
	logits  []float32       // of the row
	list    *shortlist.List // of the row; nil: all tokens
	place   []int32         // of each token of the vocabulary, its logit's, of a head with a draft vocabulary; nil: the same
}

// Above is by how much a token's logit is above another's; see clues.Head.
func (m *judging) Above(_ int, token, other int32) (difference float32, known bool) {
	a, b := m.find(token), m.find(other)
	if a < 0 || b < 0 {
		return 0, false
	}
	return m.logits[a] - m.logits[b], true
}

func (m *judging) find(token int32) int {
	switch {
	case m.list != nil:
		return m.list.Find(token)
	case m.place != nil:
		return int(m.place[token])
	}
	return int(token)
}

// beside is what the target said beside the sequence's paths.
func (s *state) beside() *draft.Asides {
	if s.known != nil {
		return &s.known.text.Asides
	}
	return &s.asides
}
