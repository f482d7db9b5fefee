package grammar

import (
	"math"
	"unicode/utf8"
)

// Constraint is a grammar over the vocabulary of a model.
type Constraint struct {
	Grammar *Grammar
	Vocab   *Vocab
	Encode  func(text string) []int32 // the tokens with which the model would likely write a text; may be nil

	// Closed, if set, is what must follow the last character if the first Budget tokens are
	// reasoning that has not ended.
	Closed *Grammar
	Budget int
}

// Start returns the state before any token.
func (c *Constraint) Start() (*State, error) {
	s, err := c.Grammar.Start()
	return c.limit(s, 0, err)
}

// Next returns the state after a token that n tokens precede, or nil if the token is not allowed.
func (c *Constraint) Next(s *State, token int32, n int) (*State, error) {
	next, err := s.grammar.Next(c.Vocab, s, token)
	return c.limit(next, n+1, err)
}

// limit ends reasoning after its last token. A character that the token cuts is completed first.
func (c *Constraint) limit(s *State, n int, err error) (*State, error) {
	if err != nil || s == nil || c.Closed == nil || n < c.Budget || !s.thinking {
		return s, err
	}
	begun, err := s.grammar.begun(s)
	if err != nil {
		return nil, err
	}
	return c.Closed.after(begun)
}

// begun returns the beginning of a character after which as much of it is missing as in a state, or
// a whole character if nothing is missing.
func (g *Grammar) begun(s *State) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	lo, hi := s.span(g)
	missing := 0
	for at := s; missing < utf8.UTFMax; missing++ {
		next, _ := at.span(g)
		if next < utf8.RuneSelf || next >= firstLead {
			break
		}
		var err error
		if at, err = g.step(at, next); err != nil {
			return nil, err
		}
	}
	switch {
	case missing == 0:
		return []byte("a"), nil
	case missing == 1:
		return []byte{0xc2}, nil
	case missing == 2 && lo == 0xa0:
		return []byte{0xe0}, nil
	case missing == 2 && hi == 0x9f:
		return []byte{0xed}, nil
	case missing == 2:
		return []byte{0xe1}, nil
	case lo == 0x90:
		return []byte{0xf0}, nil
	case hi == 0x8f:
		return []byte{0xf4}, nil
	}
	return []byte{0xf1}, nil
}

// firstLead is the lowest byte that begins a character of several bytes; bytes from utf8.RuneSelf
// up to it continue one.
const firstLead = 0xc0

// span returns the lowest and the highest byte that may follow.
func (s *State) span(g *Grammar) (lo, hi byte) {
	lo = 0xff
	for _, c := range s.configs {
		for _, e := range g.nodes[c.node].bytes {
			lo, hi = min(lo, e.lo), max(hi, e.hi)
		}
	}
	return lo, hi
}

// Mask returns the set of tokens that are allowed in a state, not including those that end the text.
func (c *Constraint) Mask(s *State) (*Mask, error) { return s.grammar.Mask(c.Vocab, s) }

// Forced returns the text that must follow, as tokens. Other tokens may spell the same text.
func (c *Constraint) Forced(s *State) ([]int32, error) {
	text, err := s.grammar.Forced(s)
	for n := range min(len(text), utf8.UTFMax) { // a character that is cut at the end
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

// Apply copies the logits of a set's tokens, and sets the others to minus infinity.
func (m *Mask) Apply(dst, logits []float32) {
	off := float32(math.Inf(-1))
	for i := range dst {
		dst[i] = off
		if m.bits[i/64]>>(i%64)&1 > 0 {
			dst[i] = logits[i]
		}
	}
}
