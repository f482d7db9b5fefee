// Rows that say what comes next: the head over all or part of the vocabulary (package shortlist),
// and what is kept of it.

package specblock

import (
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/textrank"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
)

// row is what the head computed in a slot of a block. It lasts until the next proposal.
type row struct {
	// its likeliest tokens, before noise, penalties and all else: LogProb is their probability's logarithm
	top    []sample.Candidate
	level  []sample.Candidate // the first in the race that the target's choice will be
	state  []float32          // what a block that starts from the row begins with
	output textrank.Output    // its logits, as the head computed them
	beyond Beyond             // of the logits that are not in top
	bucket int8               // the rank head's choice
	rank   [11]float32        // its correction of log-probabilities, by place: see textrank.Row
}

// listing is the shortlists of a pass.
type listing struct {
	method  shortlist.Method // nil: the head computes all tokens
	queries []shortlist.Query
	lists   []*shortlist.List // of each row looked at; nil without a method
	stats   draft.ListStats
}

// ListStats are what the shortlists made of the drafts.
func (l *listing) ListStats() draft.ListStats { return l.stats.OfHead() }

// look takes rows of x, those of d.from, as the ones that say what comes next. They are the rows of
// the live sequences' starts.
func (d *drafter) look(x nn.Mat) {
	if d.block == len(d.passes) {
		d.passes = append(d.passes, new(looked))
	}
	p := d.passes[d.block]
	d.states = p.states.Mat(len(d.from), d.n.Hidden)
	d.exec.Gather(x, d.from, d.states)
	d.choose()
	p.logits.Reset()
	for i := range d.from {
		if d.lists == nil {
			p.logits.Add(i, nil)
		} else {
			p.logits.Add(i, &d.lists[i].Shortlist)
		}
	}
	p.logits.Run(d.exec, d.states, &d.n.Norm, &d.n.Head)
	at := 0
	for _, s := range d.live {
		for i := range s.starts {
			s.starts[i].rows = int32(len(s.rows))
			for range s.starts[i].slots {
				r := row{state: d.states.Row(at), output: textrank.Output{Logits: p.logits.Row(at),
					Tokens: d.n.Tokens, Places: d.places}}
				if d.lists != nil {
					r.output.List = d.lists[at]
				}
				if number := len(s.rows); number == len(s.caches) {
					s.caches = append(s.caches, textrank.RowCache{})
				} else {
					s.caches[number].Reset()
				}
				s.rows = append(s.rows, r)
				at++
			}
		}
	}
}

// looked is the memory of one pass's rows.
type looked struct {
	states nn.Buffer
	logits nn.Logits
}

// choose gives every row its shortlist.
func (d *drafter) choose() {
	if d.method == nil {
		return
	}
	d.queries = d.queries[:0]
	for _, s := range d.live {
		for i := range s.starts {
			node := s.starts[i].node
			for k := range s.starts[i].slots {
				d.queries = append(d.queries, shortlist.Query{State: s.words, Step: int(s.grown.Depth[node] + k),
					Token: s.grown.Token[node]})
			}
		}
	}
	d.lists = slices.Grow(d.lists[:0], len(d.queries))[:len(d.queries)]
	d.method.Choose(d.queries, d.lists)
	for _, l := range d.lists {
		d.stats.Row(l)
	}
}

// compare counts what the target chose along its path that the lists had.
func (s *state) compare(r *draft.Rows) {
	if s.words == nil || r.Next < 0 {
		return
	}
	for i := range r.Tokens {
		next := r.Next
		if i+1 < len(r.Tokens) {
			next = r.Tokens[i+1]
		}
		if x := s.after(r.Tokens[1 : i+1]); x != nil {
			s.d.stats.Choice(x.output.List, next)
		}
	}
}

// after is what the head said of what comes after a path below the root of the last proposal; nil:
// nothing.
func (s *state) after(path []int32) *row {
	if len(s.rows) == 0 {
		return nil
	}
	t, node := &s.grown, 0
	if s.d.options.Tree == BestFirst {
		t = &s.draft
	}
	for _, token := range path {
		if node = t.Child(node, token); node < 0 {
			return nil
		}
	}
	number := int32(-1)
	if s.d.options.Tree == Ranked {
		if node < len(s.below) {
			number = s.below[node]
		}
	} else if x := &s.inBlock[node]; x.slot < s.all[x.block].slots {
		number = s.all[x.block].rows + x.slot
	}
	if number < 0 {
		return nil
	}
	return &s.rows[number]
}
