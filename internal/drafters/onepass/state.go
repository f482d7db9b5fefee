// One sequence: its context, and the rows that wait to be added to it.

package onepass

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/tree"
)

// state is one sequence.
type state struct {
	d *Drafter
	sequence.Sequence

	chain  tree.Tree         // the rows that a pass reads
	take   int               // how many they are
	lists  []*shortlist.List // of each depth of the last draft
	offTop []bool            // with +text, of each node: its path left the head's first candidates
	paths  [][]float32       // of each node: the state of the path to it, if scores depend on it
	growth
	drawing
}

// commit takes in rows of the target; they wait to be read.
func (s *state) commit(r *draft.Rows) {
	s.compare(r)
	s.Sequence.Commit(&s.d.Shared, r)
}

// read adds the live sequences' waiting rows to their contexts.
func (d *Drafter) read() {
	width := len(d.Taps()) * d.hidden
	for {
		d.forest.Reset()
		d.tokens = d.tokens[:0]
		room := sequence.ReadRows
		for _, s := range d.live {
			n := s.Read.Take(0, room)
			if n > 0 {
				s.chain.ResetChain(s.Read.Todo()[:n])
				d.tokens = append(d.tokens, s.chain.Token...)
				d.forest.Add(s.Read.Cache, &s.chain, 0)
				s.Read.Cache.Reserve(0, n)
				room -= n
			}
			s.take = n
		}
		if d.forest.Len() == 0 {
			return
		}
		taps, at := d.taps.Mat(d.forest.Len(), width), 0
		for _, s := range d.live {
			at += copy(taps.Data[at:], s.Read.Taps[:s.take*width])
		}
		d.Model.Read(d.exec, &d.forest, d.tokens, taps)
		for _, s := range d.live {
			s.Read.Cache.CommitAll()
			s.Read.Read(s.take)
		}
	}
}
