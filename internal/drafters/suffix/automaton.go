// Package suffix finds where strings of a text occurred in it, and what followed, with a suffix
// automaton that grows with the text.
package suffix

import (
	"iter"
	"slices"
)

// Automaton is the suffix automaton of a text, built online (Blumer et al. 1985): each
// state stands for the strings that end at the same places of the text, the root (0) for the empty one;
// following the edges from the root spells exactly the substrings of the text. A state's link is its longest suffix
// that ends at more places. A text of n tokens has at most 2n states and 3n edges, and
// adding a token takes constant time on average.
type Automaton struct {
	link, length        []int32 // length: of the state's longest string
	count, last, before []int32 // how many places its strings end at, the latest, and the one before; see touchMost
	head                []int32 // first edge, -1 for none

	edges []Edge
	table []int32 // open-addressed hash of (from, token): edge number plus 1, 0 empty; a power of two, at most half full

	tail int32 // the state of the whole text
	n    int32 // its length
}

// Edge leads from a state to the state of its strings followed by the token.
type Edge struct{ From, Token, To, next int32 }

// Place is the longest suffix of a string that is in the text: the state it belongs to, 0 for none, and its length.
type Place struct{ State, Length int32 }

// touchMost limits how many suffixes of the text a new token is counted for, from the longest down:
// in a text that repeats one token, as many suffixes occurred before as the text has tokens. Counts of
// shorter ones are then too low, which does not matter: longer matches are preferred.
const touchMost = 48

// New returns the automaton of the empty text.
func New() *Automaton {
	a := &Automaton{table: make([]int32, 256)}
	a.state(0)
	a.link[0] = -1
	return a
}

// Len returns the length of the text.
func (a *Automaton) Len() int { return int(a.n) }

// End returns the whole text as a match.
func (a *Automaton) End() Place { return Place{a.tail, a.n} }

// Length returns the length of a state's longest string.
func (a *Automaton) Length(s int32) int32 { return a.length[s] }

// Count returns at how many places a state's strings end.
func (a *Automaton) Count(s int32) int32 { return a.count[s] }

// Last returns the latest place where they end, as the length of the text up to there, and the one before; 0 if none.
func (a *Automaton) Last(s int32) (last, before int32) { return a.last[s], a.before[s] }

// After yields the edges of a state, the one made last first, and considers no more than most. It
// leaves out tokens that also follow the strings of longer, the state of a longer match; -1: there is
// none.
func (a *Automaton) After(s, longer int32, most int) iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		e := a.head[s]
		for looked := 0; e >= 0 && looked < most; looked++ {
			x := a.edges[e]
			e = x.next
			if (longer < 0 || a.Next(longer, x.Token) < 0) && !yield(x) {
				return
			}
		}
	}
}

// Shorter returns the longest suffix of a match that occurred at more places.
func (a *Automaton) Shorter(p Place) Place {
	p.State = a.link[p.State]
	if p.State > 0 {
		p.Length = a.length[p.State]
	}
	return p
}

// Grow makes room for so many more tokens.
func (a *Automaton) Grow(tokens int) {
	for _, p := range []*[]int32{&a.link, &a.length, &a.count, &a.last, &a.before, &a.head} {
		*p = slices.Grow(*p, 2*tokens)
	}
	a.edges = slices.Grow(a.edges, 3*tokens)
}

func (a *Automaton) state(length int32) int32 {
	a.link = append(a.link, 0)
	a.length = append(a.length, length)
	a.count = append(a.count, 0)
	a.last = append(a.last, 0)
	a.before = append(a.before, 0)
	a.head = append(a.head, -1)
	return int32(len(a.link) - 1)
}

// slot returns the place in the table of the edge from state s by token, or the empty place where it belongs.
func (a *Automaton) slot(s, token int32) int {
	mask := len(a.table) - 1
	h := (uint64(uint32(s))<<32 | uint64(uint32(token))) * 0x9e3779b97f4a7c15
	for i := int(h>>32) & mask; ; i = (i + 1) & mask {
		e := a.table[i] - 1
		if e < 0 || a.edges[e].From == s && a.edges[e].Token == token {
			return i
		}
	}
}

// Next returns the state after token, or -1.
func (a *Automaton) Next(s, token int32) int32 {
	if e := a.table[a.slot(s, token)] - 1; e >= 0 {
		return a.edges[e].To
	}
	return -1
}

func (a *Automaton) connect(s, token, to int32) {
	if 2*(len(a.edges)+1) > len(a.table) {
		a.table = make([]int32, 2*len(a.table))
		for i, e := range a.edges {
			a.table[a.slot(e.From, e.Token)] = int32(i) + 1
		}
	}
	a.edges = append(a.edges, Edge{s, token, to, a.head[s]})
	a.head[s] = int32(len(a.edges) - 1)
	a.table[a.slot(s, token)] = int32(len(a.edges))
}

// Extend adds a token to the text.
func (a *Automaton) Extend(token int32) {
	cur := a.state(a.n + 1)
	p := a.tail
	for p >= 0 && a.Next(p, token) < 0 {
		a.connect(p, token, cur)
		p = a.link[p]
	}
	if p >= 0 {
		q := a.Next(p, token)
		if a.length[p]+1 < a.length[q] { // q's longer strings do not end here: separate them from the shorter ones
			q = a.part(p, q, token)
		}
		a.link[cur] = q
	}
	a.tail = cur
	a.n++
	for s, k := cur, 0; s > 0 && k < touchMost; s, k = a.link[s], k+1 {
		a.count[s]++
		a.last[s], a.before[s] = a.n, a.last[s]
	}
}

// part splits off those strings of q that the edge from p by token spells, and their suffixes.
func (a *Automaton) part(p, q, token int32) int32 {
	c := a.state(a.length[p] + 1)
	for e := a.head[q]; e >= 0; e = a.edges[e].next {
		a.connect(c, a.edges[e].Token, a.edges[e].To)
	}
	a.link[c] = a.link[q]
	a.count[c] = a.count[q]
	a.last[c] = a.last[q]
	a.before[c] = a.before[q]
	a.link[q] = c
	for p >= 0 {
		e := a.table[a.slot(p, token)] - 1
		if e < 0 || a.edges[e].To != q {
			break
		}
		a.edges[e].To = c
		p = a.link[p]
	}
	return c
}

// Match returns the longest suffix of from's match followed by token that is in the text.
func (a *Automaton) Match(from Place, token int32) Place {
	for p, n := from.State, from.Length; ; n = a.length[p] {
		if s := a.Next(p, token); s >= 0 {
			return Place{State: s, Length: n + 1}
		}
		p = a.link[p]
		if p < 0 {
			return Place{}
		}
	}
}
