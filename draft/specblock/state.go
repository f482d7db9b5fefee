// One sequence: the entries of its text, and what the next proposal will add to them.

package specblock

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
)

// state is one sequence.
type state struct {
	d       *drafter
	sampler *sample.Sampler // chooses as the target will
	history *sample.History // the committed text, where penalties look at it
	warm    int             // 1 above temperature 0
	chosen  bool            // the target's choice goes by more than logits
	at      int             // committed tokens: the position of the next root

	read   *draft.Text // an entry is a block's rows
	rooted bool        // the last proposal has read the entry of the last token that waits, with its root
	root   int32
	words  shortlist.State // what shortlists know of the text; nil: the head computes all tokens

	growth
}

func (s *state) Close() {
	s.read.Close()
	s.growth = growth{}
	if s.words != nil {
		s.words.Close()
		s.words = nil
	}
}

// commit takes in rows of the target; they wait to be read.
func (s *state) commit(r *draft.Rows) {
	if s.history != nil {
		for _, token := range r.Tokens {
			s.history.Push(token)
		}
	}
	s.at += len(r.Tokens)
	if s.text != nil {
		s.d.commits.Learn(s.text, s.ranked(), r, s.sampler, s.history)
	}
	s.compare(r)
	s.rows = s.rows[:0]
	draft.Tell(s.words, r)
	if s.rooted && len(r.Tokens) > 0 {
		if r.Tokens[0] == s.root {
			s.read.Read(1)
			s.rooted = false
		} else {
			s.unroot()
		}
	}
	s.read.Commit(r)
}

// unroot takes back the entry that the last proposal read, of which nothing was committed.
func (s *state) unroot() {
	if s.rooted {
		_ = s.read.Cache.Truncate(s.read.Cache.Len() - s.d.cached) // it is there
		s.rooted = false
	}
}

// readRows is how many rows are read in one pass at most.
const readRows = 512

// read computes entries of live sequences: where more than some of them wait, or more than have
// room beside the root's.
func (d *drafter) read(more int) {
	for {
		room := max(readRows/d.cached, 1)
		for _, s := range d.live {
			s.take = 0
			if n := s.read.Waiting(); n > 0 && !s.rooted && (n > more || n >= s.read.Room()) {
				s.take = min(n, s.read.Room(), room)
				room -= s.take
			}
		}
		if d.entries(false); len(d.tokens) == 0 {
			return
		}
		for _, s := range d.live {
			s.read.Cache.CommitAll()
			s.read.Read(s.take)
		}
	}
}

// entries computes the first entries that wait, s.take of each live sequence: the rows of each that
// are cached, which are then pending in the caches. With whole it computes the last of every
// sequence to the end of its block, and returns the states of all rows, a sequence after the other.
func (d *drafter) entries(whole bool) nn.Mat {
	last := d.cached
	if whole {
		last = d.n.Block
	}
	n := d.n
	d.forest.Reset()
	d.tokens, d.lengths = d.tokens[:0], d.lengths[:0]
	for _, s := range d.live {
		if s.take == 0 {
			continue
		}
		first := len(d.tokens)
		for i := range s.take {
			token := s.root
			if i+1 < len(s.read.Tokens) {
				token = s.read.Tokens[i+1]
			}
			d.tokens, d.lengths = append(d.tokens, token), append(d.lengths, int32(d.cached))
		}
		d.lengths[len(d.lengths)-1] = int32(last)
		n.text(&s.layout, s.read.Place(), d.tokens[first:], d.cached, last)
		s.layout.Add(&d.forest, s.read.Cache, 0)
		s.read.Cache.Reserve(0, s.layout.Tree.Len())
	}
	if len(d.tokens) == 0 {
		return nn.Mat{}
	}
	width := len(n.Taps) * n.Hidden
	taps, at := d.taps.Mat(len(d.tokens), width), 0
	for _, s := range d.live {
		at += copy(taps.Data[at:], s.read.Taps[:s.take*width])
	}
	c := d.c.Mat(len(d.tokens), n.Hidden)
	d.exec.Hold()
	n.Condition(d.exec, taps, c)
	x := d.x.Mat(d.forest.Len(), n.Hidden)
	if !whole {
		n.Read(d.exec, &d.forest, c, d.tokens, x, &d.bufs)
	} else {
		n.RunUneven(d.exec, &d.forest, c, d.tokens, d.lengths, x, &d.bufs)
	}
	d.exec.Release()
	return x
}
