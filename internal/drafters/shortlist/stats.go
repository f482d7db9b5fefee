// Counts of how shortlists affected a drafter's head.

package shortlist

import "github.com/grovellm/grove/draft"

// StatsOf returns the counts of what a drafter's head computed over shortlists since the drafter was made, or zeros
// if its head computes all tokens or it has none. A wrapper of a drafter with a head must have the method ListStats.
func StatsOf(d draft.Drafter) Stats {
	if c, ok := d.(interface{ ListStats() Stats }); ok {
		return c.ListStats()
	}
	return Stats{}
}

// Stats counts the rows whose logits were computed over a shortlist, and how often the list had the
// token that the target chose.
type Stats struct {
	Head    bool // the drafter has an output head
	Rows    int  // of drafts, with a list
	Tokens  int  // total on all of their lists
	Choices int  // tokens that the target chose below rows of the accepted path
	Listed  int  // how many of those were on the row's list
}

// OfHead returns s for a drafter with an output head.
func (s Stats) OfHead() Stats {
	s.Head = true
	return s
}

// Row counts a row of a draft.
func (s *Stats) Row(l *List) {
	s.Rows++
	s.Tokens += l.Count()
}

// Choice counts the target's choice below a row of the accepted path.
func (s *Stats) Choice(l *List, token int32) {
	s.Choices++
	if l.Has(token) {
		s.Listed++
	}
}

// Sub returns the counts since o was taken.
func (s Stats) Sub(o Stats) Stats {
	return Stats{s.Head, s.Rows - o.Rows, s.Tokens - o.Tokens, s.Choices - o.Choices, s.Listed - o.Listed}
}

// Add adds the counts of o.
func (s *Stats) Add(o Stats) {
	s.Head = s.Head || o.Head
	s.Rows += o.Rows
	s.Tokens += o.Tokens
	s.Choices += o.Choices
	s.Listed += o.Listed
}

// Size returns the mean number of tokens on a row's list, and Coverage the share of the target's
// choices that were on their row's list. Without any, they are 0.
func (s *Stats) Size() float64     { return ratio(s.Tokens, s.Rows) }
func (s *Stats) Coverage() float64 { return ratio(s.Listed, s.Choices) }

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Tell tells a sequence's shortlists which tokens the target committed and which others it
// considered there. words may be nil.
func Tell(words State, r *draft.Rows) {
	if words == nil {
		return
	}
	words.Commit(r.Tokens)
	if r.Pass != nil && r.Next >= 0 {
		words.Alternatives(len(r.Nodes), (*said)(r))
	}
}

// said is the logits of rows.
type said draft.Rows

func (r *said) Row(i int) []float32 { return (*draft.Rows)(r).Logits(i) }
