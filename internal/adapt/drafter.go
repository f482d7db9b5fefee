package adapt

import (
	"context"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/speculate"
)

// Wrap returns a drafter that learns while it drafts with d, a drafter of the adapter's head.
func (a *Adapter) Wrap(d learn.Learner) draft.Drafter {
	return &drafter{Learner: d, a: a}
}

// Of returns the adapter that a drafter learns with, or nil if it does not learn.
func Of(d draft.Drafter) *Adapter {
	if w, ok := d.(*drafter); ok {
		return w.a
	}
	return nil
}

// drafter is a drafter that learns.
type drafter struct {
	learn.Learner
	a        *Adapter
	using    learn.Head
	timer    timer
	requests []draft.Request
	rows     []draft.Rows
}

// state is a sequence, called a query in the paper.
type state struct {
	draft.State
	a         *Adapter
	hasRows   bool             // Commit was called
	collector *learn.Collector // nil: its text will not be used
	query     query
}

// query is the outcome of a sequence.
type query struct {
	texts     []*learn.Example
	signal    float64 // s, equation 8
	rejected  int
	rounds    int // verified, with or without drafted nodes
	committed int
	seconds   float64 // of the rounds
}

func (d *drafter) Begin(o draft.Options) (draft.State, error) {
	inner, err := d.Learner.Begin(o)
	if err != nil {
		return nil, err
	}
	return &state{State: inner, a: d.a}, nil
}

// begin starts to collect the sequence's text, if there is a place for it. It is called with the
// first rows: a state that only keeps a text for others to share takes no place.
func (s *state) begin(taps int) error {
	s.hasRows = true
	if !s.a.collect() {
		return nil
	}
	c, err := learn.NewCollector(taps, s.a.vocab)
	if err != nil {
		s.a.collected()
		return err
	}
	s.collector = c
	return nil
}

// Resume is the wrapped drafter's.
func (d *drafter) Resume(s draft.State, n int, from draft.State, common int) int {
	if from != nil {
		from = from.(*state).State
	}
	return d.Learner.Resume(s.(*state).State, n, from, common)
}

// renew makes the drafter use the newest head.
func (d *drafter) renew() {
	if h := d.a.now(); h != d.using {
		d.Use(h)
		d.using = h
	}
}

func (d *drafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.timer.begin(d.a)
	d.renew()
	d.requests = append(d.requests[:0], requests...)
	for i := range d.requests {
		d.requests[i].State = d.requests[i].State.(*state).State
	}
	return d.Learner.Propose(ctx, d.requests)
}

// looksOn is how many places beyond the rejected one a round is assumed to have looked at, at most.
const looksOn = 2

func (d *drafter) Commit(rows []draft.Rows) error {
	d.timer.end(d.a, rows)
	d.rows = append(d.rows[:0], rows...)
	for i := range d.rows {
		r := &d.rows[i]
		s := r.State.(*state)
		if !s.hasRows {
			if err := s.begin(len(d.Taps())); err != nil {
				return err
			}
		}
		r.State = s.State
		var round *learn.Round
		if r.Next >= 0 && r.Tree.Len() > 1 {
			at := learn.Round{Accepted: len(r.Nodes) - 1}
			at.Looked = at.Accepted + 1 + looksOn
			var p float32
			p, at.Rejected = d.Chance(r)
			if at.Rejected {
				if p != p { // NaN
					p = 0
				}
				s.query.signal += float64(1 - p)
				s.query.rejected++
			}
			round = &at
		}
		if s.collector == nil {
			continue
		}
		if l := s.collector.Take(r, round); l != nil {
			s.query.texts = d.a.keep(append(s.query.texts, l))
		}
	}
	return d.Learner.Commit(d.rows)
}

// Ended reports the sequence's outcome to the adapter.
func (s *state) Ended(stats *speculate.Stats) {
	q := &s.query
	if s.collector != nil {
		if l := s.collector.Finish(); l != nil {
			q.texts = s.a.keep(append(q.texts, l))
		}
	}
	q.rounds, q.committed = stats.Rounds, stats.Committed
	q.seconds = (stats.Draft + stats.Verify + stats.Rest).Seconds()
	s.a.ended(q)
	s.stop()
}

// stop ends the collection of the sequence's text.
func (s *state) stop() {
	if s.collector != nil {
		s.collector, s.query.texts = nil, nil
		s.a.collected()
	}
}

func (s *state) Close() {
	s.stop()
	s.State.Close()
}
