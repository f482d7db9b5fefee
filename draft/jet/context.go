// One sequence: its context, and what the next proposal will add to it.

package jet

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/clues"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
	"github.com/grovellm/grove/tree"
)

// state is one sequence.
type state struct {
	d       *drafter
	sampler *sample.Sampler // chooses as the target will
	history *sample.History // the committed text, where penalties look at it
	warm    int             // 1 above temperature 0
	at      int             // committed tokens: the position of the next root

	cache   *nn.Cache // the context: keys and values of the latest committed rows, less those that wait
	waiting []int32   // committed tokens whose rows have not been read
	taps    []float32 // theirs: len(waiting) × len(Taps)·Hidden
	chain   tree.Tree

	words  shortlist.State   // what shortlists know of the text; nil: the head computes all tokens
	lists  []*shortlist.List // of each depth of the last draft
	text   *clues.Text       // nil where trees are not conditioned
	strays []bool            // of each node of a conditioned tree: its path left the head's first guesses
	growth
}

func (s *state) Close() {
	s.forget()
	s.waiting, s.taps = nil, nil
	s.text = nil
	if s.words != nil {
		s.words.Close()
		s.words = nil
	}
}

// forget empties the context.
func (s *state) forget() {
	s.cache.Free()
	s.waiting, s.taps = s.waiting[:0], s.taps[:0]
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
		s.text.Learn(r.Tokens)
		s.d.heard.Learn(&s.text.Asides, r, s.sampler, s.history)
	}
	s.tell(r)
	if r.Pass == nil || r.Skip {
		s.forget()
		return
	}
	n := s.d.n
	from := 0
	if s.cache.Len()+len(s.waiting)+len(r.Tokens) >= n.Config.Context { // the head knows no texts as long as that
		s.forget()
		from = max(0, len(r.Tokens)-n.Config.Context+1)
	}
	for i := from; i < len(r.Tokens); i++ {
		s.waiting = append(s.waiting, r.Tokens[i])
		for t := range n.Taps {
			s.taps = append(s.taps, r.Tap(t, i)...)
		}
	}
}

// readRows is how many rows are read in one pass at most.
const readRows = 512

// read brings the rows of the live sequences that wait into their contexts.
func (d *drafter) read() {
	width := len(d.n.Taps) * d.n.Hidden
	for {
		d.forest.Reset()
		room := readRows
		for _, s := range d.live {
			if n := min(len(s.waiting), room); n > 0 {
				s.chain.ResetChain(s.waiting[:n])
				d.forest.Add(s.cache, &s.chain, 0)
				s.cache.Reserve(0, n)
				room -= n
			} else {
				s.chain.ResetChain(nil)
			}
		}
		if d.forest.Len() == 0 {
			return
		}
		taps, at := d.taps.Mat(d.forest.Len(), width), 0
		for _, s := range d.live {
			at += copy(taps.Data[at:], s.taps[:s.chain.Len()*width])
		}
		d.n.Context(d.exec, &d.forest, taps, &d.bufs)
		for _, s := range d.live {
			n := s.chain.Len()
			s.cache.CommitAll()
			s.waiting = append(s.waiting[:0], s.waiting[n:]...)
			s.taps = append(s.taps[:0], s.taps[n*width:]...)
		}
	}
}
