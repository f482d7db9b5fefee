// A proposal: block after block, of all sequences together, each in one pass.

package specblock

import (
	"context"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/calibrate"
)

// shortText is how many entries are read in one pass with the first block at most.
const shortText = 32

// Propose grows the trees of all requests together. When it fails, nothing has been proposed, and
// the next tree starts over.
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
	for d.pass = 0; len(d.live) > 0; d.pass++ {
		if d.pass == 0 {
			d.first()
		} else {
			d.next()
		}
		d.rank()
		n := 0
		for _, s := range d.live {
			s.grow()
			if s.goOn() {
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
	d.proposals = draft.Proposals(d.proposals, len(requests))
	for i := range requests {
		if s := requests[i].State.(*state); s.request != nil {
			d.proposals[i].Levels = s.passes
			if s.request.Guide != nil && s.Text != nil {
				d.First[s.Warm].Learn(s.expectedByText, float32(s.sum))
			}
			s.request.Tree.Copy(&s.draft)
			s.end()
		}
	}
	return d.proposals, nil
}

// begin readies the growth of a request's tree. It reports false where no pass of the head is to be
// made: the tree is then that of the text alone, with +text.
func (s *state) begin(r *draft.Request) bool {
	s.request = nil
	s.rows = s.rows[:0]
	s.unroot()
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
	r.Tree.Reset(r.Tree.Token[0])
	if s.Text != nil {
		s.Text.Keep(0, 0)
	}
	s.request, s.root = r, r.Tree.Token[0]
	s.grown.Reset(s.root)
	s.passes, s.sum = 0, 0
	s.blocks, s.below = s.blocks[:0], append(s.below[:0], -1)
	return true
}

// end keeps the rows of text that the proposal computed, and no others.
func (s *state) end() {
	if s.request == nil {
		return
	}
	if s.request = nil; s.passes > 0 {
		s.Read.Cache.Reserve(s.trunk-s.d.n.Block+s.d.cached, 0)
		s.Read.Cache.CommitAll()
		s.Read.Read(s.Read.Waiting())
		s.rooted = true
	}
}

// first computes the first blocks, with the entries of text before them that still wait.
func (d *drafter) first() {
	for _, s := range d.live {
		s.Read.Room() // for the root's
		s.take = len(s.Read.Tokens)
	}
	d.exec.Hold()
	x := d.entries(true)
	d.from = d.from[:0]
	at := 0
	for _, s := range d.live {
		s.trunk = s.layout.Tree.Len()
		at += s.trunk
		s.fresh = 0
		slots := min(s.depth, d.n.Block)
		s.open(block{at: int32(s.trunk - d.n.Block), slots: int32(slots)})
		for k := range slots {
			d.from = append(d.from, int32(at-d.n.Block+k))
		}
	}
	d.look(x)
	d.exec.Release()
}

// next computes the blocks that the sequences' starts begin.
func (d *drafter) next() {
	n := d.n
	d.forest.Reset()
	d.tokens, d.from, d.lengths = d.tokens[:0], d.from[:0], d.lengths[:0]
	count := 0
	for _, s := range d.live {
		count += len(s.starts)
	}
	c := d.c.Mat(count, n.Hidden)
	for _, s := range d.live {
		before := s.layout.Tree.Len()
		s.fresh = len(s.blocks)
		for _, b := range s.starts {
			from, token := &s.rows[b.from], s.grown.Token[b.node]
			copy(c.Row(len(d.tokens)), from.state)
			d.tokens, d.lengths = append(d.tokens, token), append(d.lengths, b.slots)
			b.at = int32(n.Branch(&s.layout, int(s.blocks[from.block].at+from.slot), token, int(b.slots)))
			s.open(b)
			for range b.slots {
				d.from = append(d.from, int32(len(d.from)))
			}
		}
		s.layout.Add(&d.forest, s.Read.Cache, before)
		s.Read.Cache.Reserve(before, s.layout.Tree.Len()-before)
	}
	x := d.x.Mat(len(d.from), n.Hidden)
	d.exec.Hold()
	n.Run(d.exec, &d.forest, c, d.tokens, d.lengths, x, &d.bufs)
	d.look(x)
	d.exec.Release()
}
