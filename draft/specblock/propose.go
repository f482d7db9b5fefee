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
	for d.block = 0; len(d.live) > 0; d.block++ {
		if d.block == 0 {
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
			d.proposals[i].Levels = s.blocks
			s.finish()
			s.end()
		}
	}
	return d.proposals, nil
}

// begin readies the growth of a request's tree. It reports false where no pass of the head is to be
// made: the tree is then that of the text alone, with +text.
func (s *state) begin(r *draft.Request) bool {
	s.request = nil
	s.rows, s.tops, s.cands = s.rows[:0], s.tops[:0], s.cands[:0]
	s.unroot()
	s.budget, s.depth = min(r.Budget, s.d.options.Nodes), r.Depth
	if s.depth < 1 || s.budget < 2 {
		return false
	}
	more := float32(calibrate.FirstChance)
	if r.Guide != nil && s.text != nil {
		s.expectedByText = s.d.text.BuildByText(r, s.text, 0)
		more = s.d.firstPass[s.warm].Gain(s.expectedByText)
	}
	if len(s.read.Tokens) == 0 || int(r.Tree.Token[0]) >= s.d.n.Vocab || r.Guide != nil &&
		!r.Guide.Deeper(s.expectedByText, more) {
		return false
	}
	r.Tree.Reset(r.Tree.Token[0])
	if s.text != nil {
		s.text.Keep(0, 0)
	}
	s.request, s.root = r, r.Tree.Token[0]
	s.grown.Reset(s.root)
	s.blocks, s.sum = 0, 0
	s.below = s.below[:0]
	s.begun, s.all = append(s.begun[:0], -1), s.all[:0]
	return true
}

// end keeps the rows of text that the proposal computed, and no others.
func (s *state) end() {
	if s.request == nil {
		return
	}
	if s.request = nil; s.blocks > 0 {
		s.read.Cache.Reserve(s.trunk-s.d.n.Block+s.d.cached, 0)
		s.read.Cache.CommitAll()
		s.read.Read(s.read.Waiting())
		s.rooted = true
	}
}

// first computes the first blocks, with the entries of text before them that still wait.
func (d *drafter) first() {
	k := d.n.Block
	for _, s := range d.live {
		s.read.Room() // for the root's
		s.take = len(s.read.Tokens)
	}
	d.exec.Hold()
	x := d.entries(true)
	d.from = d.from[:0]
	at := 0
	for _, s := range d.live {
		s.trunk = s.layout.Tree.Len()
		at += s.trunk
		b := start{row: int32(s.trunk - k), slots: int32(min(s.depth, k))}
		s.starts = append(s.starts[:0], b)
		for i := range b.slots {
			d.from = append(d.from, int32(at-k)+i)
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
	count, rows := 0, 0
	for _, s := range d.live {
		count += len(s.starts)
	}
	c := d.c.Mat(count, n.Hidden)
	for _, s := range d.live {
		before := s.layout.Tree.Len()
		for i := range s.starts {
			b := &s.starts[i]
			token := s.grown.Token[b.node]
			copy(c.Row(len(d.tokens)), s.rows[b.from].state)
			d.tokens, d.lengths = append(d.tokens, token), append(d.lengths, b.slots)
			b.row = int32(n.Branch(&s.layout, int(b.row), token, int(b.slots)))
			for range b.slots {
				d.from = append(d.from, int32(rows))
				rows++
			}
		}
		s.layout.Add(&d.forest, s.read.Cache, before)
		s.read.Cache.Reserve(before, s.layout.Tree.Len()-before)
	}
	x := d.x.Mat(rows, n.Hidden)
	d.exec.Hold()
	n.RunUneven(d.exec, &d.forest, c, d.tokens, d.lengths, x, &d.bufs)
	d.look(x)
	d.exec.Release()
}
