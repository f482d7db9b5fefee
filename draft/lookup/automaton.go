package lookup

// automaton is the suffix automaton of a text, built online (Blumer et al. 1985): each
// state stands for the strings that end at the same places of the text, the root (0) for the empty one;
// following the edges from the root spells exactly the substrings of the text. A state's link is its longest suffix
// that ends at more places. A text of n tokens has at most 2n states and 3n edges, and
// adding a token takes constant time on average.
type automaton struct {
	link, length []int32 // length: of the state's longest string
	count, last  []int32 // how many places its strings end at, and the latest; see touchMost
	head         []int32 // first edge, -1 for none

	edges []edge
	table []int32 // open-addressed hash of (from, token): edge number plus 1, 0 empty; a power of two, at most half full

	tail int32 // the state of the whole text
	n    int32 // its length
}

type edge struct{ from, token, to, next int32 }

// touchMost bounds how many suffixes of the text a new token is counted for, from the longest
// down: in text that repeats one token the suffixes that occurred before are as many as the text is long.
// Counts of shorter ones are then too low, which matters to nobody: longer matches are preferred.
const touchMost = 48

func newAutomaton() *automaton {
	a := &automaton{table: make([]int32, 256)}
	a.state(0)
	a.link[0] = -1
	return a
}

func (a *automaton) state(length int32) int32 {
	a.link = append(a.link, 0)
	a.length = append(a.length, length)
	a.count = append(a.count, 0)
	a.last = append(a.last, 0)
	a.head = append(a.head, -1)
	return int32(len(a.link) - 1)
}

// slot is the place in the table of the edge from state s by token, or the empty place where it belongs.
func (a *automaton) slot(s, token int32) int {
	mask := len(a.table) - 1
	h := (uint64(uint32(s))<<32 | uint64(uint32(token))) * 0x9e3779b97f4a7c15
	for i := int(h>>32) & mask; ; i = (i + 1) & mask {
		e := a.table[i] - 1
		if e < 0 || a.edges[e].from == s && a.edges[e].token == token {
			return i
		}
	}
}

// next is the state after token, -1 where there is none.
func (a *automaton) next(s, token int32) int32 {
	if e := a.table[a.slot(s, token)] - 1; e >= 0 {
		return a.edges[e].to
	}
	return -1
}

func (a *automaton) connect(s, token, to int32) {
	if 2*(len(a.edges)+1) > len(a.table) {
		a.table = make([]int32, 2*len(a.table))
		for i, e := range a.edges {
			a.table[a.slot(e.from, e.token)] = int32(i) + 1
		}
	}
	a.edges = append(a.edges, edge{s, token, to, a.head[s]})
	a.head[s] = int32(len(a.edges) - 1)
	a.table[a.slot(s, token)] = int32(len(a.edges))
}

// extend adds a token to the text.
func (a *automaton) extend(token int32) {
	cur := a.state(a.n + 1)
	p := a.tail
	for p >= 0 && a.next(p, token) < 0 {
		a.connect(p, token, cur)
		p = a.link[p]
	}
	if p >= 0 {
		q := a.next(p, token)
		if a.length[p]+1 < a.length[q] { // q's longer strings do not end here: part them from the shorter ones
			q = a.part(p, q, token)
		}
		a.link[cur] = q
	}
	a.tail = cur
	a.n++
	for s, k := cur, 0; s > 0 && k < touchMost; s, k = a.link[s], k+1 {
		a.count[s]++
		a.last[s] = a.n
	}
}

// part splits off those strings of q that the edge from p by token spells, and their suffixes.
func (a *automaton) part(p, q, token int32) int32 {
	c := a.state(a.length[p] + 1)
	for e := a.head[q]; e >= 0; e = a.edges[e].next {
		a.connect(c, a.edges[e].token, a.edges[e].to)
	}
	a.link[c], a.count[c], a.last[c] = a.link[q], a.count[q], a.last[q]
	a.link[q] = c
	for p >= 0 {
		e := a.table[a.slot(p, token)] - 1
		if e < 0 || a.edges[e].to != q {
			break
		}
		a.edges[e].to = c
		p = a.link[p]
	}
	return c
}

// match is the longest suffix of from's match and token that is in the text; state 0 for none.
func (a *automaton) match(from place, token int32) place {
	for p, n := from.state, from.length; ; n = a.length[p] {
		if s := a.next(p, token); s >= 0 {
			return place{state: s, length: n + 1}
		}
		if p = a.link[p]; p < 0 {
			return place{}
		}
	}
}
