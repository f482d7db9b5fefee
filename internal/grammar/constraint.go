package grammar

import (
	"math"
	"unicode/utf8"
)

// Constraint is a grammar over the vocabulary of a model.
type Constraint struct {
	*Grammar
	Vocab  *Vocab
	Encode func(text string) []int32 // the tokens that the model would likely write a text with; may be nil
}

// Next is the state after a token; nil if the token is not allowed.
func (c *Constraint) Next(s *State, token int32) (*State, error) {
	return c.Grammar.Next(c.Vocab, s, token)
}

// Mask is the set of tokens that are allowed in a state, those that end the text apart.
func (c *Constraint) Mask(s *State) (*Mask, error) { return c.Grammar.Mask(c.Vocab, s) }

// Forced is the text that must follow, as tokens. Other tokens may spell the same text.
func (c *Constraint) Forced(s *State) ([]int32, error) {
	text, err := c.Grammar.Forced(s)
	for n := range min(len(text), utf8.UTFMax) { // a character that is cut off at the end
		if part := text[len(text)-n-1:]; utf8.RuneStart(part[0]) {
			if !utf8.FullRune(part) {
				text = text[:len(text)-n-1]
			}
			break
		}
	}
	if err != nil || len(text) == 0 || !utf8.Valid(text) || c.Encode == nil {
		return nil, err
	}
	return c.Encode(string(text)), nil
}

// Apply copies the logits of a set's tokens, and makes the others minus infinity.
func (m *Mask) Apply(dst, logits []float32) {
	off := float32(math.Inf(-1))
	for i := range dst {
		dst[i] = off
		if m.bits[i/64]>>(i%64)&1 > 0 {
			dst[i] = logits[i]
		}
	}
}
