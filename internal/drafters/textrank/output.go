package textrank

import (
	"math"

	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/sample"
)

// Output is a row of logits from a drafter's head.
type Output struct {
	Logits []float32
	List   *shortlist.List // the tokens that the logits are of; nil: all that the head has
	Tokens []int32         // of a draft vocabulary, the token of each logit; nil: the whole vocabulary in order
	Places []int32         // of that draft vocabulary; see Places
}

// Top is sample.Sampler.Top of the row.
func (o *Output) Top(s *sample.Sampler, dst []sample.Candidate, position int, h *sample.History) []sample.Candidate {
	switch l := o.List; {
	case l != nil:
		outside := l.LogOutside(o.Logits, max(s.Params().Temperature, 1))
		return s.TopOf(dst, o.Logits[:l.Len()], l.Tokens(), outside, position, h)
	case o.Tokens != nil:
		return s.TopOf(dst, o.Logits, o.Tokens, math.Inf(-1), position, h)
	}
	return s.Top(dst, o.Logits, position, h)
}

// above returns the logit of a token minus that of another. known is false if the head did not
// compute both.
func (o *Output) above(token, other int32) (difference float32, known bool) {
	a, b := o.place(token), o.place(other)
	if a < 0 || b < 0 {
		return 0, false
	}
	return o.Logits[a] - o.Logits[b], true
}

// Logit returns the logit of a token for which the head computed one.
func (o *Output) Logit(token int32) float32 { return o.Logits[o.place(token)] }

// place returns the index of the logit of a token, or -1.
func (o *Output) place(token int32) int {
	switch {
	case o.List != nil:
		return o.List.Find(token)
	case o.Places != nil:
		return int(o.Places[token])
	}
	return int(token)
}
