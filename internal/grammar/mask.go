package grammar

import (
	"bytes"
	"math"
	"slices"
)

// Vocab is the bytes of a vocabulary's tokens, in the order of a trie: sorted, each with the length
// of the part it shares with the previous one.
type Vocab struct {
	size   int
	pieces [][]byte // by token; nil for tokens that do not occur in text
	order  []int32
	shared []uint16
	text   []byte  // of the tokens in order, one after another
	long   []int32 // tokens of more bytes than shortPiece
}

// maxPiece limits the bytes of a token; longer ones are never allowed.
const maxPiece = math.MaxUint16

// shortPiece bounds the bytes of most tokens: 70 of DeepSeek's 102,400 have more. Shorter tokens begin at most as many
// repetitions, so states in which more must or may follow allow the same short tokens.
const shortPiece = 32

// NewVocab makes a vocabulary from the texts of its tokens. Tokens with an empty text are never allowed.
func NewVocab(pieces [][]byte) *Vocab {
	v := &Vocab{size: len(pieces), pieces: slices.Clone(pieces)}
	for token, p := range v.pieces {
		if len(p) == 0 || len(p) > maxPiece {
			v.pieces[token] = nil
			continue
		}
		v.order = append(v.order, int32(token))
	}
	slices.SortStableFunc(v.order, func(a, b int32) int { return bytes.Compare(v.pieces[a], v.pieces[b]) })
	for _, token := range v.order {
		v.text = append(v.text, v.pieces[token]...)
		if len(v.pieces[token]) > shortPiece {
			v.long = append(v.long, token)
		}
	}
	v.shared = make([]uint16, len(v.order))
	for i := 1; i < len(v.order); i++ {
		a, b := v.pieces[v.order[i-1]], v.pieces[v.order[i]]
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		v.shared[i] = uint16(n)
	}
	return v
}

// Mask is a set of tokens.
type Mask struct {
	bits  []uint64
	count int
}

// Has reports whether the set has a token.
func (m *Mask) Has(token int32) bool {
	return token >= 0 && int(token)/64 < len(m.bits) && m.bits[token/64]>>(token%64)&1 > 0
}

// Count is the number of tokens.
func (m *Mask) Count() int { return m.count }

// First is the smallest token, or -1 if the set is empty.
func (m *Mask) First() int32 {
	for token := range int32(64 * len(m.bits)) {
		if m.Has(token) {
			return token
		}
	}
	return -1
}

// Next returns the state after a token, or nil if the token is not allowed.
func (g *Grammar) Next(v *Vocab, s *State, token int32) (*State, error) {
	if token < 0 || int(token) >= v.size || v.pieces[token] == nil {
		return nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trim()
	next, err := g.walk(s, v.pieces[token])
	if err != nil || next == dead {
		return nil, err
	}
	return next, nil
}

// Mask returns the set of tokens that are allowed in a state. States that differ in large counts of repetitions
// share it, except for long tokens.
func (g *Grammar) Mask(v *Vocab, s *State) (*Mask, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trim()
	if m := g.masks[v][s]; m != nil {
		return m, nil
	}
	g.pending = g.restack(g.pending[:0], s.configs, shortPiece+1)
	near, err := g.closure()
	if err != nil {
		return nil, err
	}
	m := g.masks[v][near]
	if m == nil {
		if m, err = g.allowed(v, near); err != nil {
			return nil, err
		}
		g.keep(v, near, m)
	}
	if near != s {
		if m, err = g.withLong(m, v, s); err != nil {
			return nil, err
		}
		g.keep(v, s, m)
	}
	return m, nil
}

// keep caches a mask.
func (g *Grammar) keep(v *Vocab, s *State, m *Mask) {
	if len(g.masks[v]) >= max(maskMemory/(8*len(m.bits)+1), 16) || g.masks[v] == nil {
		g.masks[v] = map[*State]*Mask{}
	}
	g.masks[v][s] = m
}

// withLong returns a mask that is right for short tokens with the long tokens that are allowed in a state.
func (g *Grammar) withLong(m *Mask, v *Vocab, s *State) (*Mask, error) {
	own := m
	for _, token := range v.long {
		next, err := g.walk(s, v.pieces[token])
		if err != nil {
			return nil, err
		}
		if allowed := next != dead; allowed != m.Has(token) {
			if own == m {
				own = &Mask{slices.Clone(m.bits), m.count}
			}
			own.bits[token/64] ^= 1 << (token % 64)
			own.count += map[bool]int{true: 1, false: -1}[allowed]
		}
	}
	return own, nil
}

// allowed computes the set of tokens that are allowed in a state. It walks the vocabulary's trie, and
// skips the subtree below a byte that is not allowed.
func (g *Grammar) allowed(v *Vocab, s *State) (*Mask, error) {
	m := &Mask{bits: make([]uint64, (v.size+63)/64)}
	path := []*State{s} // after each byte of the previous piece
	text := v.text
	failed := math.MaxInt // the number of bytes at which the previous piece failed
	for i, token := range v.order {
		size, shared := len(v.pieces[token]), int(v.shared[i])
		piece := text[:size]
		text = text[size:]
		if shared > failed {
			continue // it begins with the byte that failed
		}
		failed = math.MaxInt
		at := path[:shared+1]
		for _, b := range piece[shared:] {
			last := at[len(at)-1]
			var next *State
			if last.generation == g.generation && last.to != nil {
				next = last.to[g.class[b]]
			}
			if next == nil {
				var err error
				if next, err = g.step(last, b); err != nil {
					return nil, err
				}
			}
			if next == dead {
				failed = len(at) - 1
				break
			}
			at = append(at, next)
		}
		path = at
		if failed == math.MaxInt {
			m.bits[token/64] |= 1 << (token % 64)
			m.count++
		}
	}
	return m, nil
}
