// Proposals: the blocks of all sequences in one pass, and a tree from each.

package onepass

import (
	"context"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// growth is a growing tree.
type growth struct {
	request *draft.Request
	budget  int

	expectedByText float32   // tokens that the tree from the text only is expected to add
	depth          int       // wanted rows of the block: depths 1 to depth
	block          tree.Tree // its rows
	first          int       // the row of depth 1 among the logits of all blocks

	ranked  int                  // candidates considered in a depth
	cands   []sample.Candidate   // depth × ranked
	said    [][]sample.Candidate // of each depth: its candidates, with the head's own probabilities
	chances []sample.Candidate   // depth × ranked: the same with the chances that the noise leaves them
	levels  [][]sample.Candidate // of each depth: what the tree grows from, said or chances

	outputs []textrank.Output // of each depth: its row
}

// Propose computes every sequence's block.
func (d *Drafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.live = d.live[:0]
	for i := range requests {
		if s := requests[i].State.(*state); s.begin(&requests[i]) {
			d.live = append(d.live, s)
		}
	}
	d.proposals = batch.Proposals(d.proposals, len(requests))
	if len(d.live) == 0 {
		return d.proposals, nil
	}
	d.read()
	d.run()
	d.rank()
	for _, s := range d.live {
		d.grow(s)
	}
	for i := range requests {
		s := requests[i].State.(*state)
		d.proposals[i].Levels = s.depth
		if s.draw != nil && s.depth > 0 {
			d.proposals[i].Drawn = s.drawn
		}
		s.request = nil
	}
	return d.proposals, nil
}

// begin prepares the growth of a request's tree. It returns false if the head makes no pass: with
// +text the tree is then that of the text only.
func (s *state) begin(r *draft.Request) bool {
	d := s.d
	s.request = r
	s.budget = r.Budget
	s.said = s.said[:0]
	s.depth = min(r.Depth, r.Budget-1, d.block.Depths)
	if s.depth < 1 || int(r.Tree.Token[0]) >= d.Vocab {
		s.depth = 0
		return false
	}
	blind := s.Read.Ahead && len(s.Read.Tokens) == 0 // there is nothing to draft from yet
	if r.Guide == nil {
		if blind {
			s.depth = 0
		}
		return !blind
	}
	more := r.Guide.Value(d.reach[s.Warm].ratio[0])
	if s.Text != nil {
		s.expectedByText = d.byText.BuildByText(r, s.Text, d.Shape.Builder.Width)
		more = d.First[s.Warm].Gain(s.expectedByText)
	}
	if blind || !r.Guide.Deeper(s.expectedByText, more) {
		s.depth = 0
		return false
	}
	r.Tree.Reset(r.Tree.Token[0])
	if d.block.Causal {
		s.depth = d.reach[s.Warm].deepen(r.Guide, s.depth)
	}
	return true
}

// run computes the blocks, and the logits of their wanted rows. In a causal block a row does not
// depend on those after it, so the block ends with the last wanted row. In a block that looks both
// ways every row is computed.
func (d *Drafter) run() {
	d.forest.Reset()
	d.tokens = d.tokens[:0]
	d.anchors = d.anchors[:0]
	d.from = d.from[:0]
	width, ahead := len(d.Taps())*d.hidden, 0
	for _, s := range d.live {
		rows := d.whole
		if d.block.Causal {
			rows = s.depth + d.block.Skip
		}
		d.Model.LayOut(&s.block, s.request.Tree.Token[0], rows)
		d.forest.Add(s.Read.Cache, &s.block, 0)
		s.Read.Cache.Reserve(0, rows)
		s.first = len(d.from)
		first := len(d.tokens)
		d.anchors = append(d.anchors, int32(first))
		for i := range s.depth {
			d.from = append(d.from, int32(first+d.block.Skip+i))
		}
		d.tokens = append(d.tokens, s.block.Token...)
		ahead += len(s.Read.Tokens) // tokens whose entries wait for the anchor
	}
	taps, at := d.taps.Mat(ahead, width), 0
	for _, s := range d.live {
		at += copy(taps.Data[at:], s.Read.Taps)
	}
	x, rows := d.x.Mat(len(d.tokens), d.hidden), d.wanted.Mat(len(d.from), d.hidden)
	d.exec.Hold()
	d.Model.Run(d.exec, &d.forest, d.tokens, d.anchors, taps, x)
	d.exec.Gather(x, d.from, rows)
	d.head(rows)
	d.exec.Release()
	if d.corrector != nil {
		d.corrector.Prepare(d.exec, rows)
	}
	for _, s := range d.live {
		s.Read.Cache.Reserve(0, 0) // drop the block's keys and values
	}
}

// task is a depth of a sequence whose candidates are to be ranked.
type task struct {
	s     *state
	depth int
}

// rankedLeast candidates are considered even if fewer can be nodes: the others show how certain the
// first is.
const rankedLeast = 8

// rank finds the candidates of all depths, on all workers.
func (d *Drafter) rank() {
	d.tasks = d.tasks[:0]
	for _, s := range d.live {
		s.ranked = min(max(d.Shape.Ranked(s.budget), rankedLeast), d.outputs)
		if s.Text != nil {
			s.ranked = min(textrank.RowMost, d.outputs)
		}
		if d.corrector != nil {
			s.ranked = min(d.corrector.Candidates(), d.outputs)
		}
		s.cands = slices.Grow(s.cands[:0], s.depth*s.ranked)[:s.depth*s.ranked]
		s.chances = slices.Grow(s.chances[:0], s.depth*s.ranked)
		s.said = slices.Grow(s.said[:0], s.depth)[:s.depth]
		s.levels = slices.Grow(s.levels[:0], s.depth)[:s.depth]
		s.outputs = slices.Grow(s.outputs[:0], s.depth)[:s.depth]
		s.ready()
		s.History.Push(s.request.Tree.Token[0])
		for depth := 1; depth <= s.depth; depth++ {
			d.tasks = append(d.tasks, task{s, depth})
		}
	}
	d.Pool.Run(len(d.tasks), (*ranking)(d))
	for _, s := range d.live {
		s.History.Pop()
	}
}

// ranking is the drafter as a job of the pool.
type ranking Drafter

// Do ranks by the logits at temperature 0. Above, it ranks with the position's noise, as the target's
// choice will. Penalties are those of the text up to the root: the tokens in between are not yet
// known.
func (d *ranking) Do(worker, number int) {
	t := &d.tasks[number]
	s, i := t.s, t.depth-1
	sampler := d.Samplers[worker]
	lower.SetLike(sampler, s.Sampler)
	s.outputs[i] = s.output(t.depth)
	if s.draw != nil {
		s.distribute(sampler, i)
		return
	}
	history := s.History
	if d.corrector != nil { // it ranks them again below every node
		lower.SetLike(sampler, d.greedy)
		history = nil
	}
	from, to := i*s.ranked, (i+1)*s.ranked
	s.said[i] = s.outputs[i].Top(sampler, s.cands[from:from:to], s.At+t.depth, history)
	s.levels[i] = s.said[i]
	if s.Warm > 0 && s.Text == nil && d.corrector == nil {
		s.levels[i] = append(s.chances[from:from:to], s.said[i]...)
		treebuild.CoupledChances(s.levels[i], s.ranked, s.Sampler.Params().Temperature)
	}
}

// grow builds the sequence's tree. If there is a guide, its chances determine which nodes are worth
// most.
func (d *Drafter) grow(s *state) {
	g, t := s.request.Guide, s.request.Tree
	if s.draw != nil {
		s.drawTree()
	} else if d.corrector != nil {
		d.Shape.BuildFrom(t, (*corrected)(s), s.budget, g)
	} else if s.Text != nil {
		deepest := s.request.Depth
		if d.Depth > 0 {
			deepest = min(deepest, d.Depth)
		}
		d.Shape.setLevels(s.levels)
		d.text.Guide = g
		d.text.Build(t, s.Text, (*rows)(s), s.budget, deepest)
	} else {
		d.Shape.Build(t, s.levels, s.budget, g)
	}
	if g != nil {
		var expected float32
		expected, d.path = textrank.Expected(t, g, d.path)
		d.reach[s.Warm].learn(t, d.path, s.depth)
		if s.Text != nil {
			d.First[s.Warm].Learn(s.expectedByText, expected)
		}
	}
}

// rows is the state as the drafter's source of rows for a tree with +text.
type rows state

// Row returns the row of the node's depth, which was computed for the path of the head's first candidates.
func (s *rows) Row(t *tree.Tree, node int) (row textrank.Row, offTop bool) {
	depth := int(t.Depth[node])
	if parent := t.Parent[node]; parent >= 0 {
		offTop = s.offTop[parent]
		if depth <= s.depth && len(s.levels[depth-1]) > 0 {
			offTop = offTop || s.levels[depth-1][0].Token != t.Token[node]
		}
	}
	s.offTop = append(s.offTop[:node], offTop)
	if depth < s.depth {
		row = textrank.Row{Top: s.levels[depth], Depth: depth + 1, Output: &s.outputs[depth]}
	}
	return row, offTop
}
