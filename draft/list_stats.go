// What shortlists made of a drafter's head, in counts.

package draft

import "github.com/grovellm/grove/internal/drafters/shortlist"

// ListStats count the rows whose logits were computed over a shortlist, and how often the list held
// the token that the target chose.
type ListStats struct {
	Head    bool // the drafter has an output head
	Rows    int  // of drafts, with a list
	Tokens  int  // on the lists of all of them
	Choices int  // of the target's tokens below rows of the accepted path
	Listed  int  // of those, on the row's list
}

// OfHead is s, of a drafter with an output head.
func (s ListStats) OfHead() ListStats {
	s.Head = true
	return s
}

// Row counts a row of a draft.
func (s *ListStats) Row(l *shortlist.List) {
	s.Rows++
	s.Tokens += l.Count()
}

// Choice counts what the target chose below a row of the accepted path.
func (s *ListStats) Choice(l *shortlist.List, token int32) {
	s.Choices++
	if l.Has(token) {
		s.Listed++
	}
}

// Sub is the counts since o was taken.
func (s ListStats) Sub(o ListStats) ListStats {
	return ListStats{s.Head, s.Rows - o.Rows, s.Tokens - o.Tokens, s.Choices - o.Choices, s.Listed - o.Listed}
}

// Add adds o.
func (s *ListStats) Add(o ListStats) {
	s.Head = s.Head || o.Head
	s.Rows += o.Rows
	s.Tokens += o.Tokens
	s.Choices += o.Choices
	s.Listed += o.Listed
}

// Size is the mean number of tokens on a row's list, and Coverage the share of the target's choices
// that were on theirs; 0 without any.
func (s *ListStats) Size() float64     { return ratio(s.Tokens, s.Rows) }
func (s *ListStats) Coverage() float64 { return ratio(s.Listed, s.Choices) }

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
