// One sequence: the entries of its text, and what the next proposal will add to them.

package specblock

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/sequence"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tree"
)

// state is one sequence. An entry of its text is a block's rows.
type state struct {
	d *drafter
	sequence.Sequence
	chosen bool // the target's choice goes by more than logits
	rooted bool // the last proposal has read the entry of the last token that waits, with its root
	root   int32

	growth
}

func (s *state) Close() {
	s.Sequence.Close()
	s.growth = growth{}
}

// commit takes in rows of the target; they wait to be read.
func (s *state) commit(r *draft.Rows) {
	s.compare(r)
	if s.rooted && len(r.Tokens) > 0 {
		if r.Tokens[0] == s.root {
			s.Read.Read(1)
			s.rooted = false
		} else {
			s.unroot()
		}
	}
	var t *tree.Tree
	switch {
	case s.Text == nil:
	case s.d.options.Tree == Ranked:
		t = &s.grown
	default:
		t = &s.Text.Built
	}
	s.Sequence.Commit(&s.d.Shared, r, t)
	s.rows = s.rows[:0]
}

// unroot takes back the entry that the last proposal read, of which nothing was committed.
func (s *state) unroot() {
	if s.rooted {
		_ = s.Read.Cache.Truncate(s.Read.Cache.Len() - s.d.cached) // it is there
		s.rooted = false
	}
}

// read computes entries of live sequences: where more than some of them wait, or more than have
// room beside the root's.
func (d *drafter) read(more int) {
	for {
		room := max(sequence.ReadRows/d.cached, 1)
		for _, s := range d.live {
			if s.take = 0; !s.rooted {
				s.take = s.Read.Take(more, room)
				room -= s.take
			}
		}
		if d.entries(false); len(d.tokens) == 0 {
			return
		}
		for _, s := range d.live {
			s.Read.Cache.CommitAll()
			s.Read.Read(s.take)
		}
	}
}

// entries computes the first entries that wait, s.take of each live sequence: the rows of each that
// are cached, which are then pending in the caches. With whole it computes the last of every
// sequence to the end of its block, and returns the states of all rows, a sequence after the other.
func (d *drafter) entries(whole bool) (x nn.Mat) {
	n, last := d.n, d.cached
	if whole {
		last = n.Block
	}
	d.forest.Reset()
	d.tokens, d.lengths = d.tokens[:0], d.lengths[:0]
	for _, s := range d.live {
		if s.take == 0 {
			continue
		}
		first, known := len(d.tokens), len(s.Read.Tokens)
		d.tokens = append(d.tokens, s.Read.Tokens[1:min(s.take+1, known)]...)
		if s.take == known {
			d.tokens = append(d.tokens, s.root)
		}
		for range s.take {
			d.lengths = append(d.lengths, int32(d.cached))
		}
		d.lengths[len(d.lengths)-1] = int32(last)
		n.text(&s.layout, s.Read.Place(), d.tokens[first:], d.cached, last)
		s.layout.Add(&d.forest, s.Read.Cache, 0)
		s.Read.Cache.Reserve(0, s.layout.Tree.Len())
	}
	if len(d.tokens) == 0 {
		return x
	}
	width := len(n.Taps) * n.Hidden
	taps, at := d.taps.Mat(len(d.tokens), width), 0
	for _, s := range d.live {
		at += copy(taps.Data[at:], s.Read.Taps[:s.take*width])
	}
	c := d.c.Mat(len(d.tokens), n.Hidden)
	d.exec.Hold()
	n.Condition(d.exec, taps, c)
	if x = d.x.Mat(d.forest.Len(), n.Hidden); whole {
		n.Run(d.exec, &d.forest, c, d.tokens, d.lengths, x, &d.bufs)
	} else {
		n.Read(d.exec, &d.forest, c, d.tokens, x, &d.bufs)
	}
	d.exec.Release()
	return x
}
