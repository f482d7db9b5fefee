package textstore

import (
	"github.com/grovellm/grove/draft"
)

// Recalled has a memory's matches for the end of a text: places of past texts, and which of them
// continue like a path of a tree. Its zero value has none.
type Recalled struct {
	matches []draft.Match
}

// Alive is the set of matches that a path follows, with their numbers as bits.
type Alive uint16

const (
	recalledMost  = 16 // matches: as many as Alive has bits
	recalledLeast = 3  // tokens of a match: shorter ones are in every text
)

// Find looks up the end of a text, and returns all matches.
func (r *Recalled) Find(m draft.Memory, text []int32) Alive {
	r.matches = r.matches[:0]
	if m != nil {
		r.matches = m(r.matches, text, recalledLeast, recalledMost)
	}
	return Alive(1<<len(r.matches) - 1)
}

// Follow returns the matches that continue with a token, which is at a depth below the end of the text, from 1.
func (r *Recalled) Follow(alive Alive, depth int, token int32) Alive {
	for i, m := range r.matches {
		if alive>>i&1 != 0 && (len(m.Next) < depth || m.Next[depth-1] != token) {
			alive &^= 1 << i
		}
	}
	return alive
}

// Continuation is a token that follows a path in past texts.
type Continuation struct {
	Token int32
	Count int  // of the matches
	First bool // the longest match, or the newest of the longest, continues with it
}

// Next appends the tokens of followed matches at a depth below the end of the text, those of longer
// and newer matches first. It also returns the length of the longest match, the path included, and
// how many there are.
func (r *Recalled) Next(dst []Continuation, alive Alive, depth int) (list []Continuation, length, matches int) {
	from := len(dst)
next:
	for i, m := range r.matches {
		if alive>>i&1 == 0 || len(m.Next) < depth {
			continue
		}
		matches++
		if matches == 1 {
			length = m.Length + depth - 1
		}
		for j := from; j < len(dst); j++ {
			if dst[j].Token == m.Next[depth-1] {
				dst[j].Count++
				continue next
			}
		}
		dst = append(dst, Continuation{m.Next[depth-1], 1, matches == 1})
	}
	return dst, length, matches
}
