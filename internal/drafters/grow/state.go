package grow

import (
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// state is one sequence: its text as far as the model has read it, and the tree that is growing or
// grew last.
type state struct {
	sequence.Sequence // when drawing, its sampler has its own noise
	read              *Text
	d                 *Drafter
	scarce            bool // a node may have fewer tokens to choose from than it should have children
	drawing           bool // children are drawn from the drafter's distribution: draft.Options.Sampled

	distribution func(node int) []float32 // this state's drawn, made once

	places  []textrank.Place // for +text: of each node of the tree, its longest n-gram
	rebuilt *rebuilt         // of best-first trees with +text; otherwise nil

	lists  []*shortlist.List   // of each node expanded in this step
	listed []*output.Shortlist // the same, for the pass
	listOf []*shortlist.List   // of each expanded node, by its row

	lost bool // the text has a token that the model does not know: nothing more is proposed

	growth
	ready bool // the growth is complete, and is that of the last proposed tree

	adapted adapted // DynaTree's parameters
}

func (s *state) Close() { s.lose() }

// lose gives up the text permanently.
func (s *state) lose() {
	s.lost, s.ready = true, false
	s.Sequence.Close()
}

// commit takes in rows of the target. It computes nothing: the tree's rows that equal the text's are
// kept in the cache, and all others wait to be read.
func (s *state) commit(r *draft.Rows) error {
	for _, token := range r.Tokens {
		s.History.Push(token)
	}
	s.At += len(r.Tokens)
	ready := s.ready && len(r.Tokens) > 0 && r.Tokens[0] == s.tree.Token[0]
	s.ready = false
	if s.lost || len(r.Tokens) == 0 {
		return nil
	}
	if ready {
		s.compare(r)
	}
	for _, words := range s.Words {
		shortlist.Tell(words, r)
	}
	if s.Text != nil {
		t := &s.tree
		if !ready {
			t = nil
		}
		s.d.Commits.Learn(s.Text, t, r, s.Sampler, s.History)
	}
	if slices.ContainsFunc(r.Tokens, func(token int32) bool { return int(token) >= s.d.Vocab }) {
		s.lose()
		return nil
	}
	if ready && r.Next >= 0 {
		s.d.Shape.learn(s, r.Tree, r.Nodes)
	}
	if !s.read.Commit(r) || !ready {
		return nil
	}
	s.d.yield[s.Warm].learn(&s.seen)
	s.walk(r.Tokens)
	if err := s.read.Cache.Commit(s.nodes); err != nil {
		return err
	}
	s.read.Read(len(s.nodes))
	return nil
}

// judge returns how many levels of the state's own last tree the target accepted, and how many were
// verified. Nodes that were pruned or cut by the loop do not count, nor do nodes of other drafters
// verified in the same tree.
func (s *state) judge(verified *tree.Tree, nodes []int32) (accepted, depth int) {
	s.index = append(s.index[:0], 0) // each node's number in the verified tree, -1 if it was not verified
	for node := 1; node < s.tree.Len(); node++ {
		at := s.index[s.tree.Parent[node]]
		if at >= 0 {
			at = int32(verified.Child(int(at), s.tree.Token[node]))
		}
		s.index = append(s.index, at)
		if at < 0 {
			continue
		}
		level := int(s.tree.Depth[node])
		depth = max(depth, level)
		if level < len(nodes) && nodes[level] == at {
			accepted = max(accepted, level)
		}
	}
	return accepted, depth
}

// walk follows tokens, the root first, down the tree as far as its rows equal the text's. It lists
// the rows of the text before the root and of the path. Rows that reading would compute with a later
// window are left out.
func (s *state) walk(tokens []int32) {
	s.nodes = s.nodes[:0]
	for i := range s.read.Whole(int(s.shift) + 1) {
		s.nodes = append(s.nodes, int32(i))
	}
	room := s.read.Window - s.read.Cache.Len()
	for node, i := 0, 1; i < len(tokens) && s.d.Model.Keeps() && len(s.nodes) < room; i++ {
		node = s.tree.Child(node, tokens[i])
		if node < 0 || s.row[node] < 0 {
			break
		}
		s.nodes = append(s.nodes, s.row[node])
	}
}

// growth is a tree that grows, or grew last.
type growth struct {
	request *draft.Request
	deepest int  // greatest depth of nodes
	most    int  // most nodes
	steps   int  // passes so far
	free    bool // this step takes no pass: see Blocks

	tree  tree.Tree // every candidate that was ever a child; node 0 is the root
	row   []int32   // of each node: its row in run, -1 while it is not expanded
	path  []float32 // of each node: log-probability from the root, as the drafter sees it
	worth []float32 // of each node: its probability from the root by the guide, or without one exp(path)
	fresh int       // the first node of the last step

	expectedByText float32 // tokens that the tree from the text only is expected to add

	expected float32 // sum of the values of the nodes that count, without the root
	pooled   bool    // the tree may have more nodes than are proposed: only the best are; see best
	best     least   // if pooled: the worth of the most-1 best nodes, without the root

	expand     []int32            // nodes expanded in this step
	cands      []sample.Candidate // ranked candidates of each; LogProb is the drafter's estimate; see rank
	count      []int32            // how many each has
	confidence []float32          // the probability of each one's first candidate

	// candidates below each row of run from the root on, space for ranked each; LogProb is the model's
	rows     []sample.Candidate
	rowCount []int32 // how many each row has

	probs [][]float32 // drawing: the distribution of each row of run, over the target's vocabulary
	shift int32       // rows of run before the root: run's row shift+i is the i-th expanded node

	run   tree.Tree // rows that the model computes: text without rows, the root, expanded nodes
	from  int       // how many of them it has computed
	asked []int32   // rows whose logits are wanted

	seen  yield   // the yield of its steps
	nodes []int32 // scratch
	index []int32 // the place of each node in the proposed tree, -1 if it was dropped
}

// begin prepares the growth of a request's tree. It returns false if the model makes no pass: with
// +text the tree is then that of the text only.
func (s *state) begin(r *draft.Request) bool {
	s.ready = false
	s.request = r
	s.steps = 0
	if s.Text != nil && !s.lost && r.Guide != nil {
		s.expectedByText = s.d.byText.BuildByText(r, s.Text, s.d.limits.children)
	}
	root := r.Tree.Token[0]
	s.deepest, s.most = min(r.Depth, s.d.limits.depth), min(r.Budget, s.d.limits.nodes)
	if s.rebuilt != nil { // beyond its rows the text extends the tree
		s.deepest = r.Depth
	}
	blind := s.read.Ahead && len(s.read.Tokens) < max(s.read.Block, 1) // there is nothing to draft from yet
	if m, ok := s.d.Model.(Reader); ok {
		blind = blind || !m.Reads(r.Cache, s.At)
	}
	if s.lost || blind || int(root) >= s.d.Vocab || s.deepest < 1 || s.most < 2 {
		return false
	}
	s.tree.Reset(root)
	s.row = append(s.row[:0], -1)
	s.path = append(s.path[:0], 0)
	s.worth = append(s.worth[:0], 1)
	s.fresh, s.expected = 0, 0
	s.best.reset(s.most - 1)
	s.seen.clear(s.d.limits.children)
	s.expand = append(s.expand[:0], 0)
	s.listOf = s.listOf[:0]
	s.rows, s.rowCount = s.rows[:0], s.rowCount[:0]
	if r.Guide != nil {
		more := s.gain()
		if s.Text != nil {
			more = s.d.First[s.Warm].Gain(s.expectedByText)
		}
		if !r.Guide.Deeper(s.expectedByText, more) {
			return false
		}
	}
	if s.Text != nil {
		r.Tree.Reset(root)
		s.places = append(s.places[:0], s.Text.Match(s.Text.End(), root))
		s.Text.Keep(0, 0)
	}
	return true
}

// start lays out the rows of the first step, once the unread text before the root is short.
func (s *state) start() {
	s.read.Room() // for the root
	todo := s.read.Todo()
	s.run.ResetChain(append(todo, s.tree.Token[0]))
	s.from = 0
	s.shift = int32(len(todo))
	s.free = false
	s.row[0] = s.shift
	if most := s.d.Model.Context(); most > 0 { // a node's children are ranked by its row
		s.deepest = min(s.deepest, most-s.read.Cache.Len()-len(todo))
	}
	s.asked = append(s.asked[:0], s.shift)
}

// next chooses the nodes of the next step, and lays out their rows. It returns false at the tree's end.
func (s *state) next() bool {
	s.expand = s.expand[:0]
	s.d.Shape.choose(s)
	if len(s.expand) == 0 {
		return false
	}
	s.free = s.known()
	if g := s.request.Guide; g != nil && !s.free && !g.Deeper(s.expected, s.gain()) {
		return false
	}
	s.from = s.run.Len()
	s.asked = s.asked[:0]
	for _, node := range s.expand {
		row := int32(s.run.Append(int(s.row[s.tree.Parent[node]]), s.tree.Token[node], 0))
		s.row[node] = row
		s.asked = append(s.asked, row)
	}
	return true
}

// known reports whether the chosen nodes take no pass.
func (s *state) known() bool {
	m, ok := s.d.Model.(Blocks)
	for _, node := range s.expand {
		ok = ok && m.Known(s.read, s.row[s.tree.Parent[node]])
	}
	return ok
}

// gain returns how much computing the rows of the chosen nodes is expected to add to the tree.
func (s *state) gain() float32 {
	if s.rebuilt != nil {
		return s.d.yield[s.Warm].ofRows(&s.growth)
	}
	return s.d.yield[s.Warm].gain(&s.growth, 1-treebuild.Value(s.request.Guide, 1))
}

// position returns the position of a node's token.
func (s *state) position(node int32) int { return s.At + int(s.tree.Depth[node]) }

// open reports whether a node may have children.
func (s *state) open(node int) bool { return s.row[node] < 0 && int(s.tree.Depth[node]) < s.deepest }

// room returns how many more nodes the tree may get.
func (s *state) room() int { return s.most - s.tree.Len() }

// drawn returns the distribution of a node's children in the last proposed tree; see
// draft.Proposal.
func (s *state) drawn(node int) []float32 {
	if !s.ready || !s.drawing || node < 0 || node >= s.tree.Len() || !slices.Contains(s.tree.Parent, int32(node)) {
		return nil
	}
	return s.probs[s.row[node]-s.shift]
}

// Candidates returns the candidates considered below a node of the last proposed tree, which must not
// have been committed yet, for a state of a Drafter. path has the tokens from the root down to the
// node. LogProb is the model's, before all corrections. The result is nil if the node was not
// expanded, and valid until the next Propose.
func Candidates(of draft.State, path []int32) []sample.Candidate {
	s, node := of.(*state), 0
	if !s.ready || len(path) == 0 || path[0] != s.tree.Token[0] {
		return nil
	}
	for _, token := range path[1:] {
		node = s.tree.Child(node, token)
		if node < 0 {
			return nil
		}
	}
	if s.row[node] < 0 {
		return nil
	}
	row := int(s.row[node] - s.shift)
	return s.rows[row*s.d.ranked:][:s.rowCount[row]]
}
