package grammar

import (
	"math"
	"unicode/utf8"
)

// Constraint is a grammar over the vocabulary of a model.
type Constraint struct {
	Grammar *Grammar
	Vocab   *Vocab
	Encode  func(text string) []int32 // the tokens that the model would likely write a text with; may be nil

	// Closed, where given, is what must follow when the first Budget tokens are reasoning that has not ended.
	Closed *Grammar
	Budget int
}

// Start is the state before any token.
func (c *Constraint) Start() (*State, error) {
	s, err := c.Grammar.Start()
	return c.limit(s, 0, err)
}

// Next is the state after a token, of which n stand before it; nil if the token is not allowed.
func (c *Constraint) Next(s *State, token int32, n int) (*State, error) {
	next, err := s.grammar.Next(c.Vocab, s, token)
	return c.limit(next, n+1, err)
}

// limit ends reasoning after its last token.
func (c *Constraint) limit(s *State, n int, err error) (*State, error) {
	if err == nil && s != nil && c.Closed != nil && n == c.Budget && s.thinking {
		return c.Closed.Start()
	}
	return s, err
}

// Mask is the set of tokens that are allowed in a state, those that end the text apart.
func (c *Constraint) Mask(s *State) (*Mask, error) { return s.grammar.Mask(c.Vocab, s) }

// Forced is the text that must follow, as tokens. Other tokens may spell the same text.
func (c *Constraint) Forced(s *State) ([]int32, error) {
	text, err := s.grammar.Forced(s)
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
