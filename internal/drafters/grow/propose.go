package grow

import (
	"context"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/sample"
)

// Propose grows the trees of all requests together, with one pass of the model per step. If it fails,
// nothing has been proposed, and the next tree starts over.
func (d *Drafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.live = d.live[:0]
	for i := range requests {
		if s := requests[i].State.(*state); s.begin(&requests[i]) {
			d.live = append(d.live, s)
		}
	}
	if err := d.read(ctx, shortText); err != nil {
		return nil, err
	}
	for _, s := range d.live {
		s.start()
	}
	for len(d.live) > 0 {
		if err := d.run(ctx); err != nil {
			return nil, err
		}
		d.rank()
		n := 0
		for _, s := range d.live {
			s.attach()
			if s.next() {
				d.live[n] = s
				n++
			}
		}
		d.live = d.live[:n]
	}
	d.proposals = batch.Proposals(d.proposals, len(requests))
	for i := range requests {
		s := requests[i].State.(*state)
		if s.steps == 0 {
			continue
		}
		s.finish()
		d.proposals[i].Levels = s.steps
		if s.drawing {
			d.proposals[i].Drawn = s.distribution
		}
		s.ready = true
		s.request = nil
	}
	return d.proposals, nil
}

// run computes this step's rows of all trees that are still growing.
func (d *Drafter) run(ctx context.Context) error {
	d.rows = d.rows[:0]
	for _, s := range d.live {
		d.rows = append(d.rows, Rows{Text: s.read, Tree: &s.run, From: s.from, Known: int(s.shift) + 1, Asked: s.asked,
			Cache: s.request.Cache})
	}
	d.Model.Prepare(d.rows)
	d.list()
	if err := d.Model.Run(ctx); err != nil {
		return err
	}
	d.tally()
	return nil
}

const (
	// shortText is the longest text without rows that is computed in the same pass as the root: every
	// row of the tree lists the rows of it that it sees.
	shortText = 32
	// readRows is the most rows of text that are read in one pass.
	readRows = model.PrefillChunk
)

// read computes rows of live texts without logits, several texts in a pass: of those in which more
// than so many rows wait, or more than fit together with a root.
func (d *Drafter) read(ctx context.Context, more int) error {
	for {
		d.rows = d.rows[:0]
		room := readRows
		for _, s := range d.live {
			if n := s.read.Take(more, room); n > 0 {
				s.run.ResetChain(s.read.Todo()[:n])
				d.rows = append(d.rows, Rows{Text: s.read, Tree: &s.run, Known: n})
				room -= n
			}
		}
		if len(d.rows) == 0 {
			return nil
		}
		d.Model.Prepare(d.rows)
		if err := d.Model.Run(ctx); err != nil {
			return err
		}
		for i := range d.rows {
			r := &d.rows[i]
			r.Text.Cache.CommitAll()
			r.Text.Read(r.Known)
		}
	}
}

// attach adds the children of the nodes expanded in this step.
func (s *state) attach() {
	if !s.free {
		s.steps++
	}
	if s.rebuilt != nil {
		s.rebuild()
		return
	}
	s.fresh = s.tree.Len()
	for i, node := range s.expand {
		cands := s.cands[i*s.d.ranked:][:s.count[i]]
		n := min(s.d.Shape.breadth(s, node, s.confidence[i]), len(cands))
		s.seen.weight += s.worth[node]
		for rank, c := range cands[:max(n, 0)] {
			w := s.worth[node] * s.chance(int(s.tree.Depth[node])+1, c.LogProb)
			s.seen.chance[rank] += w
			s.add(node, c, w)
		}
	}
	if s.pooled { // some nodes were pushed out
		s.expected = 0
		for _, w := range s.best.heap {
			s.expected += treebuild.Value(s.request.Guide, w)
		}
	}
}

// rebuild rebuilds a best-first tree from the text and all its rows.
func (s *state) rebuild() {
	before := s.expected
	s.expected = s.rebuilt.build(s)
	if s.steps > 1 {
		for _, node := range s.expand {
			s.seen.weight += s.worth[node]
		}
		s.seen.chance[0] += s.expected - before
	}
}

// add makes a candidate a node with a worth, if there is room for it.
func (s *state) add(parent int32, c sample.Candidate, worth float32) {
	if s.pooled && !(worth > 0 && s.best.add(worth)) || !s.pooled && s.room() <= 0 {
		return
	}
	s.expected += treebuild.Value(s.request.Guide, worth)
	node := s.tree.Append(int(parent), c.Token, c.LogProb)
	s.row = append(s.row, -1)
	s.path = append(s.path, s.path[parent]+s.tree.LogProb[node])
	s.worth = append(s.worth, worth)
	if s.Text != nil {
		s.places = append(s.places, s.Text.Match(s.places[parent], c.Token))
	}
}

// chance returns the probability that a node is accepted if its parent is.
func (s *state) chance(depth int, logProb float32) float32 {
	return treebuild.Chance(s.request.Guide, depth, logProb)
}

// finish proposes the tree: the best nodes of a pool, otherwise all nodes down to the shape's floor.
func (s *state) finish() {
	to, floor := s.request.Tree, s.d.Shape.floor()
	if s.Text != nil {
		s.d.First[s.Warm].Learn(s.expectedByText, s.expected)
	}
	switch {
	case s.rebuilt != nil:
		to.Copy(&s.rebuilt.tree)
		return
	case s.pooled:
		s.index = s.tree.Sub(to, s.worth, s.most, s.deepest, s.index)
		return
	case s.drawing:
		floor = negInf // dropping a drawn child would bias acceptance
	}
	s.nodes = append(s.nodes[:0], 0)
	for node := 1; node < s.tree.Len(); node++ {
		if s.path[node] >= floor {
			s.nodes = append(s.nodes, int32(node))
		}
	}
	s.index = s.tree.Pick(to, s.nodes, s.index)
}
