// Trees from blocks: the paper's, in which the rank head sets how many children a node has and where
// later blocks start, and with +text the most probable nodes by head and text.

package specblock

import (
	"cmp"
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/tree"
)

// state is one sequence, and its current or last proposed tree. An entry of the sequence's text has a
// block's rows.
type state struct {
	d *drafter
	sequence.Sequence

	request *draft.Request
	root    int32
	budget  int
	depth   int // greatest depth of nodes

	expectedByText float32 // tokens that the tree from the text only is expected to add

	take   int    // entries of a pass over the text
	layout Layout // rows: those of text that were pending, then those of blocks
	rows   []row  // of all blocks
	first  int    // of the current pass
	passes int    // so far

	starts   []start // of the current pass
	found    []start // blocks that might start after it
	expected float32 // tokens that the blocks of the current pass may add

	grown tree.Tree // all nodes found so far; with +text: the paths to blocks
	// of each node of grown, the row of its candidates, -1: none; with +text: only of nodes that a block starts from
	below []int32
	draft tree.Tree // the nodes that would be proposed
	worth []float32 // of each node of grown, or with +text of draft: the chance that the target's text goes through it
	sum   float32   // of the worths of the nodes that would be proposed

	index  []int32 // of each node of grown, its place in draft; -1: none
	places []place // with +text: of each node of draft
	path   []int32
}

// start is where a block starts.
type start struct {
	node        int32   // node of grown: its token is the block's, and its children are from the first row
	from        int32   // the row whose state it begins with
	rows, slots int32   // its first row, and how many are computed
	value       float32 // the value of starting there
}

// place is what is known about a node of a tree with +text.
type place struct {
	grown  int32 // its node of grown, if its path leads to a block; otherwise -1
	row    int32 // the row that predicts the token after it, -1: none
	offTop bool  // the path left the first candidates of the row's block
}

// grow builds the tree from what is known after another pass, and finds where more blocks could start.
func (s *state) grow() {
	before := s.sum
	s.found = s.found[:0]
	if s.Text == nil {
		s.attach()
	} else {
		s.build()
	}
	s.passes++
	if s.expected > 0 {
		ratio := &s.d.yield[s.Warm][s.passes-1]
		*ratio += ((s.sum-before)/s.expected - *ratio) / calibrate.Memory
	}
}

// next chooses the starts of the next pass, the most valuable of those found, and reports whether the
// pass pays.
func (s *state) next() bool {
	s.starts, s.expected = s.starts[:0], 0
	if s.passes == s.d.options.Blocks {
		return false
	}
	slices.SortStableFunc(s.found, func(a, b start) int { return cmp.Compare(b.value, a.value) })
	for _, b := range s.found {
		if most := s.d.options.Starts; b.value > 0 && int(s.grown.Depth[b.node]) < s.depth &&
			(most == 0 || len(s.starts) < most) &&
			!slices.ContainsFunc(s.starts, func(o start) bool { return o.node == b.node }) {
			s.starts = append(s.starts, b)
			s.expected += b.value
		}
	}
	g := s.request.Guide
	return len(s.starts) > 0 && (g == nil || g.Deeper(s.sum, s.d.yield[s.Warm][s.passes]*s.expected))
}

// add returns the node of grown for a token below another node, and makes it if there is none.
func (s *state) add(parent int, token int32, logProb float32) int {
	node := s.grown.Append(parent, token, logProb)
	if node == len(s.below) {
		s.below = append(s.below, -1)
	}
	return node
}

// attach adds the predictions of a pass's blocks (algorithm 2, lines 6 to 9). In every block the
// candidates of slot k become children of the likeliest one of slot k − 1, and those of the first slot
// children of the node that the block starts from: as many as the slot's bucket says. If there are
// several, a later block may start from each of them, on the state of the slot; otherwise only from
// the last slot's, unless the head gave up the path.
//
// Predictions of two blocks for the same place share one node: their candidates are one list of
// children, distinguished only by their tokens.
func (s *state) attach() {
	for _, b := range s.starts {
		node := int(b.node)
		certain := true
		lost := false
		for k := range b.slots {
			number := b.rows + k
			r := &s.rows[number]
			s.below[node] = number
			width := min(s.d.widths[r.bucket], len(r.level))
			if width == 0 && number == 0 {
				width = min(1, len(r.level)) // the tree's first node is drafted in any case: it has been paid for
			}
			if width == 0 {
				break
			}
			lost = lost || certain && r.bucket == RankBuckets-1
			certain = certain && r.bucket == 0
			parent := node
			for j, c := range r.level[:width] {
				child := s.add(parent, c.Token, c.LogProb)
				if j == 0 {
					node = child
				}
				if width > 1 || r.last && !lost {
					s.found = append(s.found, start{node: int32(child), from: number})
				}
			}
		}
	}
	s.weigh()
	// What lies below a node is worth no more than the node: blocks start from nodes that would be
	// proposed, and no others.
	for i := range s.found {
		if node := s.found[i].node; s.index[node] >= 0 {
			s.found[i].value = s.worth[node]
		}
	}
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
		s.worth[t.Parent[i]] += float32(math.Exp(float64(t.LogProb[i])))
	}
	for i := 1; i < t.Len(); i++ {
		if p := s.worth[t.Parent[i]]; p > 1 {
			t.LogProb[i] -= float32(math.Log(float64(p)))
		}
	}
	_, s.worth = textrank.Expected(t, s.request.Guide, s.worth)
	s.index = t.Sub(&s.draft, s.worth, s.budget, s.depth, s.index)
	s.sum = 0
	for i := 1; i < t.Len(); i++ {
		if s.index[i] >= 0 {
			s.sum += treebuild.Value(s.request.Guide, s.worth[i])
		}
	}
}

// build builds the tree of the text and all blocks anew, and finds where more could start: likely
// nodes whose first candidate is not likely. A slot's row is computed for the head's own first
// candidates. Below other nodes of its depth it is the best prediction there is, and counts for
// less.
func (s *state) build() {
	for _, b := range s.starts {
		s.below[b.node] = b.rows
	}
	b, t := &s.d.builder, &s.draft
	b.Width, b.Guide = 0, s.request.Guide
	t.Reset(s.root)
	b.Build(t, s.Text, s, s.budget, s.depth)
	s.sum, s.worth = textrank.Expected(t, s.request.Guide, s.worth)
	for node := 1; node < t.Len(); node++ {
		from, own := s.places[t.Parent[node]].row, s.places[node].row
		value := s.worth[node] * (1 - float32(b.FirstChance(node)))
		if from < 0 || own >= 0 && s.rows[own].slot == 0 || value < calibrate.RowCost {
			continue // no row has a state for its token; a block starts there already; or it does not pay
		}
		at := 0
		s.path = t.Path(node, s.path[:0])
		for _, n := range s.path[1:] {
			at = s.add(at, t.Token[n], 0)
		}
		s.found = append(s.found, start{node: int32(at), from: from, value: value})
	}
}

// Row is textrank.Rows'. It finds the place of the node that was added last.
func (s *state) Row(t *tree.Tree, node int) (row textrank.Row, offTop bool) {
	x := place{row: s.below[0]}
	if parent := t.Parent[node]; parent >= 0 {
		up, token := &s.places[parent], t.Token[node]
		x = place{-1, -1, up.offTop}
		if up.row >= 0 {
			r := &s.rows[up.row]
			if !r.last {
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
	if x.row < 0 {
		return row, x.offTop
	}
	r := &s.rows[x.row]
	row = textrank.Row{Top: r.level[:min(len(r.level), textrank.RowMost)], Depth: int(r.slot + 1 + r.pass),
		Output: &r.output, Cache: &r.cache}
	if s.d.judged {
		row.Rank = r.rank[:]
	}
	return row, x.offTop
}

// after is what the head said of what comes after a path below the root of the last proposal; nil:
// nothing.
func (s *state) after(path []int32) *row {
	if len(s.rows) == 0 {
		return nil
	}
	t, node := &s.grown, 0
	if s.Text != nil {
		t = &s.draft
	}
	for _, token := range path {
		node = t.Child(node, token)
		if node < 0 {
			return nil
		}
	}
	var number int32
	if s.Text != nil {
		number = s.places[node].row
	} else {
		number = s.below[node]
	}
	if number < 0 {
		return nil
	}
	return &s.rows[number]
}
