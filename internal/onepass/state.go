// One sequence: its context, and what the next proposal will add to it.

package onepass

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/textrank"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
	"github.com/grovellm/grove/tree"
)

// state is one sequence.
type state struct {
	d       *Drafter
	sampler *sample.Sampler // chooses as the target will
	history *sample.History // the committed text, where penalties look at it
	warm    int             // 1 above temperature 0
	at      int             // committed tokens: the position of the next root

	read  *draft.Text // the context: keys and values of the latest committed rows, and rows that wait
	chain tree.Tree   // the rows that a pass reads
	take  int         // how many they are

	words  []shortlist.State // what each shortlist method knows of the text; none: the head computes all tokens
	lists  []*shortlist.List // of each depth of the last draft
	text   *textrank.Text    // of +text; nil without it
	offTop []bool            // with +text, of each node: its path left the head's first candidates
	growth
}

func (s *state) Close() {
	s.read.Close()
	s.text = nil
	for _, words := range s.words {
		words.Close()
	}
	s.words = nil
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
		s.d.commits.Learn(s.text, &s.text.Built, r, s.sampler, s.history)
	}
	s.tell(r)
	s.read.Commit(r)
}

// readRows is how many rows are read in one pass at most.
const readRows = 512

// read brings the rows of the live sequences that wait into their contexts.
func (d *Drafter) read() {
	width := len(d.Model.Taps()) * d.hidden
	for {
		d.forest.Reset()
		d.tokens = d.tokens[:0]
		room := readRows
		for _, s := range d.live {
			n := min(s.read.Waiting(), room)
			if n > 0 {
				n = min(n, s.read.Room())
				s.chain.ResetChain(s.read.Todo()[:n])
				d.tokens = append(d.tokens, s.chain.Token...)
				d.forest.Add(s.read.Cache, &s.chain, 0)
				s.read.Cache.Reserve(0, n)
				room -= n
			}
			s.take = n
		}
		if d.forest.Len() == 0 {
			return
		}
		taps, at := d.taps.Mat(d.forest.Len(), width), 0
		for _, s := range d.live {
			at += copy(taps.Data[at:], s.read.Taps[:s.take*width])
		}
		d.Model.Read(d.exec, &d.forest, d.tokens, taps)
		for _, s := range d.live {
			s.read.Cache.CommitAll()
			s.read.Read(s.take)
		}
	}
}
