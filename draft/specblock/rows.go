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

// block is the rows of a proposal that start from a node.
type block struct {
	node  int32   // of grown, below which its first row's candidates are; the block's token is the node's
	from  int32   // of rows: the one that it starts from
	rows  int32   // of rows: its first
	slots int32   // of its rows, as many are computed
	at    int32   // of the layout: its first row
	level int     // passes before its own
	value float64 // what it is worth to start there
}

// row is what the head computed in a slot of a block. It lasts until the next proposal.
type row struct {
	block, slot int32

	// its likeliest tokens, before noise, penalties and all else: LogProb is their probability's logarithm
	top    []sample.Candidate
	level  []sample.Candidate // the first in the race that the target's choice will be
	state  []float32          // what a block that starts from the row begins with
	output textrank.Output    // its logits, as the head computed them
	bucket int8               // the rank head's choice
	rank   [11]float32        // its correction of log-probabilities, by place: see textrank.Row
	cache  textrank.RowCache
}

// passRows is the memory of one pass's rows.
type passRows struct {
	states nn.Buffer
	logits nn.Logits
}

// open adds a block of the pass under way, and its rows.
func (s *state) open(b block) {
	first := len(s.rows)
	s.rows = slices.Grow(s.rows, int(b.slots))[:first+int(b.slots)] // in the memory of earlier proposals' rows
	for k := range b.slots {
		r := &s.rows[first+int(k)]
		if r.top == nil {
			r.top = make([]sample.Candidate, 0, FeatureLogits)
			r.level = make([]sample.Candidate, 0, max(s.d.ranked, textrank.CandidatesMost))
		}
		r.block, r.slot = int32(len(s.blocks)), k
		r.cache.Reset()
	}
	b.rows, b.level = int32(first), s.passes
	s.blocks = append(s.blocks, b)
}

// look takes rows of x, those of d.from, as the rows of the live sequences' new blocks, and computes
// their logits.
func (d *drafter) look(x nn.Mat) {
	if d.pass == len(d.passes) {
		d.passes = append(d.passes, new(passRows))
	}
	p := d.passes[d.pass]
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
		s.first, s.inPass = int(s.blocks[s.fresh].rows), at
		for i := s.first; i < len(s.rows); i++ {
			r := &s.rows[i]
			r.state = d.states.Row(at)
			r.output = textrank.Output{Logits: p.logits.Row(at), Tokens: d.n.Tokens, Places: d.places}
			if d.lists != nil {
				r.output.List = d.lists[at]
			}
			at++
		}
	}
}

// choose gives every row its shortlist.
func (d *drafter) choose() {
	if len(d.Methods) == 0 {
		return
	}
	d.queries = d.queries[:0]
	for _, s := range d.live {
		for _, b := range s.blocks[s.fresh:] {
			for k := range b.slots {
				d.queries = append(d.queries, shortlist.Query{State: s.Words[0], Step: int(s.grown.Depth[b.node] + k),
					Token: s.grown.Token[b.node]})
			}
		}
	}
	d.lists = slices.Grow(d.lists[:0], len(d.queries))[:len(d.queries)]
	d.Methods[0].Choose(d.queries, d.lists)
	for _, l := range d.lists {
		d.Stats.Row(l)
	}
}

// compare counts what the target chose along its path that the lists had.
func (s *state) compare(r *draft.Rows) {
	if len(s.Words) == 0 || r.Next < 0 {
		return
	}
	for i := range r.Tokens {
		next := r.Next
		if i+1 < len(r.Tokens) {
			next = r.Tokens[i+1]
		}
		if x := s.after(r.Tokens[1 : i+1]); x != nil {
			s.d.Stats.Choice(x.output.List, next)
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
	var number int32
	if s.d.options.Tree == BestFirst {
		number = s.places[node].row
	} else {
		number = s.below[node]
	}
	if number < 0 {
		return nil
	}
	return &s.rows[number]
}
