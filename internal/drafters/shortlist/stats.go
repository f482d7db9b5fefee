// What shortlists made of a drafter's head, in counts.

package shortlist

import "github.com/grovellm/grove/draft"

// StatsOf counts, since a drafter was made, what its head computed over shortlists; zeros where its
// head computes all tokens, or it has none. A wrapper of a drafter with a head has to have the method.
func StatsOf(d draft.Drafter) Stats {
	if c, ok := d.(interface{ ListStats() Stats }); ok {
		return c.ListStats()
	}
	return Stats{}
}

// Stats count the rows whose logits were computed over a shortlist, and how often the list held
// the token that the target chose.
type Stats struct {
	Head    bool // the drafter has an output head
	Rows    int  // of drafts, with a list
	Tokens  int  // on the lists of all of them
	Choices int  // of the target's tokens below rows of the accepted path
	Listed  int  // of those, on the row's list
}

// OfHead is s, of a drafter with an output head.
func (s Stats) OfHead() Stats {
	s.Head = true
	return s
}

// Row counts a row of a draft.
func (s *Stats) Row(l *List) {
	s.Rows++
	s.Tokens += l.Count()
}

// Choice counts what the target chose below a row of the accepted path.
func (s *Stats) Choice(l *List, token int32) {
	s.Choices++
	if l.Has(token) {
		s.Listed++
	}
}

// Sub is the counts since o was taken.
func (s Stats) Sub(o Stats) Stats {
	return Stats{s.Head, s.Rows - o.Rows, s.Tokens - o.Tokens, s.Choices - o.Choices, s.Listed - o.Listed}
}

// Add adds o.
func (s *Stats) Add(o Stats) {
	s.Head = s.Head || o.Head
	s.Rows += o.Rows
	s.Tokens += o.Tokens
	s.Choices += o.Choices
	s.Listed += o.Listed
}

// Size is the mean number of tokens on a row's list, and Coverage the share of the target's choices
// that were on theirs; 0 without any.
func (s *Stats) Size() float64     { return ratio(s.Tokens, s.Rows) }
func (s *Stats) Coverage() float64 { return ratio(s.Listed, s.Choices) }

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Tell lets a sequence's shortlists know what the target committed, and what else it thought of
// there. words may be nil.
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
