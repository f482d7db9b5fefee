// Proposals: block after block, each in one pass for all sequences.

package specblock

import (
	"context"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/nn"
)

// shortText is the most entries that are read in the same pass as the first block.
const shortText = 32

// Propose grows the trees of all requests together. If it fails, nothing has been proposed, and the
// next tree starts over.
func (d *drafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.live = d.live[:0]
	for i := range requests {
		if s := requests[i].State.(*state); s.begin(&requests[i]) {
			d.live = append(d.live, s)
		}
	}
	d.read(shortText)
	for d.number = 0; len(d.live) > 0; d.number++ {
		d.run()
		n := 0
		for _, s := range d.live {
			s.grow()
			if s.next() {
				d.live[n] = s
				n++
			}
		}
		d.live = d.live[:n]
		if err := ctx.Err(); err != nil {
			for i := range requests {
				requests[i].State.(*state).end()
			}
			return nil, err
		}
	}
	d.proposals = batch.Proposals(d.proposals, len(requests))
	for i := range requests {
		if s := requests[i].State.(*state); s.request != nil {
			d.proposals[i].Levels = s.passes
			if s.request.Guide != nil && s.Text != nil {
				d.First[s.Warm].Learn(s.expectedByText, s.sum)
			}
			s.request.Tree.Copy(&s.draft)
			s.end()
		}
	}
	return d.proposals, nil
}

// begin prepares the growth of a request's tree. It returns false if the head makes no pass: with
// +text the tree is then that of the text only.
func (s *state) begin(r *draft.Request) bool {
	s.request, s.rows = nil, s.rows[:0]
	s.budget, s.depth = min(r.Budget, s.d.options.Nodes), r.Depth
	if s.depth < 1 || s.budget < 2 {
		return false
	}
	more := float32(calibrate.FirstChance)
	if r.Guide != nil && s.Text != nil {
		s.expectedByText = s.d.builder.BuildByText(r, s.Text, 0)
		more = s.d.First[s.Warm].Gain(s.expectedByText)
	}
	if len(s.Read.Tokens) == 0 || int(r.Tree.Token[0]) >= s.d.Vocab || r.Guide != nil &&
		!r.Guide.Deeper(s.expectedByText, more) {
		return false
	}
	s.request, s.root = r, r.Tree.Token[0]
	r.Tree.Reset(s.root)
	s.grown.Reset(s.root)
	s.passes = 0
	s.sum = 0
	s.expected = 0
	s.starts, s.below = append(s.starts[:0], start{}), append(s.below[:0], -1)
	return true
}

// end removes the rows of the proposal except those of the text before the root.
func (s *state) end() {
	if s.request == nil {
		return
	}
	s.request = nil
	if s.passes > 0 {
		s.Read.Cache.Reserve((s.take-1)*s.d.cached, 0)
		s.Read.Cache.CommitAll()
		s.Read.Read(s.take - 1)
	}
}

// read reads entries of live sequences in which more than so many wait, or more than fit together
// with the root's.
func (d *drafter) read(more int) {
	for {
		d.pass.Reset()
		room := max(sequence.ReadRows/d.cached, 1)
		for _, s := range d.live {
			s.take = s.Read.Take(more, room)
			if s.take > 0 {
				s.lay(d.cached)
				room -= s.take
			}
		}
		if len(d.pass.Tokens) == 0 {
			return
		}
		d.exec.Hold()
		c := d.conditions()
		d.n.Read(d.exec, &d.pass, c, d.x.Mat(d.pass.Forest.Len(), d.n.Hidden), &d.bufs)
		d.exec.Release()
		for _, s := range d.live {
			s.Read.Cache.CommitAll()
			s.Read.Read(s.take)
		}
	}
}

// lay adds the first s.take waiting entries to the pass: the cached rows of each, and for the last
// entry last rows. If all are taken the last is the root's.
func (s *state) lay(last int) {
	s.path = append(s.path[:0], s.Read.Tokens[1:min(s.take+1, len(s.Read.Tokens))]...)
	if s.take == len(s.Read.Tokens) {
		s.path = append(s.path, s.root)
	}
	s.d.n.text(&s.layout, s.Read.Place(), s.path, s.d.cached, last)
	s.d.n.Add(&s.d.pass, &s.layout, s.Read.Cache, 0)
}

// conditions makes the conditions of the pass's entries of text from the target's taps.
func (d *drafter) conditions() nn.Mat {
	width := len(d.n.Taps) * d.n.Hidden
	taps, at := d.taps.Mat(len(d.pass.Tokens), width), 0
	for _, s := range d.live {
		at += copy(taps.Data[at:], s.Read.Taps[:s.take*width])
	}
	c := d.c.Mat(len(d.pass.Tokens), d.n.Hidden)
	d.n.Condition(d.exec, taps, c)
	return c
}

// run computes the blocks that begin at the live sequences' starts. In the first pass these are the
// roots' entries, after the entries of text that are still waiting.
func (d *drafter) run() {
	n := d.n
	d.pass.Reset()
	d.from, d.fresh = d.from[:0], d.fresh[:0]
	offset := 0 // rows of the pass
	for _, s := range d.live {
		before := s.layout.Tree.Len()
		if d.number == 0 {
			s.Read.Room() // for the root's
			s.take, before = len(s.Read.Tokens), 0
			s.lay(n.Block)
		}
		s.first = len(s.rows)
		for i := range s.starts {
			b := &s.starts[i]
			b.rows, b.slots = int32(len(s.rows)), min(int32(s.depth)-s.grown.Depth[b.node], int32(n.Block))
			at := s.layout.Tree.Len() - n.Block
			if d.number > 0 {
				at = n.Branch(&s.layout, int(s.rows[b.from].at), s.grown.Token[b.node], int(b.slots))
			}
			for slot := range b.slots {
				s.open(b, slot, int32(at)+slot)
				d.from = append(d.from, int32(offset+at-before)+slot)
			}
		}
		if d.number > 0 {
			n.Add(&d.pass, &s.layout, s.Read.Cache, before)
		}
		offset += s.layout.Tree.Len() - before
		for i := s.first; i < len(s.rows); i++ {
			d.fresh = append(d.fresh, &s.rows[i])
		}
	}
	d.exec.Hold()
	var c nn.Mat
	if d.number == 0 {
		c = d.conditions()
	} else {
		c = d.c.Mat(len(d.pass.Tokens), n.Hidden)
		at := 0
		for _, s := range d.live {
			for _, b := range s.starts {
				at += copy(c.Data[at:], s.rows[b.from].state)
			}
		}
	}
	x := d.x.Mat(d.pass.Forest.Len(), n.Hidden)
	n.Run(d.exec, &d.pass, c, x, &d.bufs)
	d.look(x)
	d.exec.Release()
	d.rank()
}
