package lookup

import (
	"math"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/suffix"
	"github.com/grovellm/grove/sample"
)

// place is what is known at a node of the tree: the longest match, and, while all output is the beginning of the predicted one, the index of the predicted token that
// comes next (0: it is not).
type place struct {
	suffix.Place
	next int32
}

// candidate is a node that may be added.
type candidate struct {
	parent  int32
	token   int32
	at      place
	logProb float64 // given the parent
	path    float64 // from the root
}

// grow adds the likeliest candidates one by one, each opening those below it.
func (d *drafter) grow(s *state, r *draft.Request) {
	t := r.Tree
	a := s.text
	at := place{Place: a.Match(a.End(), t.Token[0])}
	if s.foretold(t.Token[0]) {
		at.next = int32(s.kept + 1)
	}
	if at.State == 0 || r.Budget <= t.Len() {
		return
	}
	d.heap = d.heap[:0]
	d.nodes = append(d.nodes[:0], at)
	d.open(s, 0, 0, 0, r.Depth)
	for len(d.heap) > 0 && t.Len() < r.Budget {
		c := d.heap.pop()
		node := t.Append(int(c.parent), c.token, float32(c.logProb))
		d.nodes = append(d.nodes, c.at)
		d.open(s, int32(node), c.path, int(t.Depth[node]), r.Depth)
	}
}

// beginning is what agreeing with the predicted output from its first token is worth, in tokens matched.
const beginning = 8

// edgesMost bounds the continuations of one match that are looked at, the newest first.
const edgesMost = 48

// open puts the children of a node on the heap. The longest match has its say first; the share of
// the probability in which its continuations do not hold the next token goes to the next
// shorter match, for continuations not seen yet, and so on (prediction by partial matching).
func (d *drafter) open(s *state, node int32, path float64, depth, most int) {
	if depth >= most {
		return
	}
	a := s.text
	d.kids = d.kids[:0]
	rest := 1.0
	at, longer, taken := d.nodes[node], int32(-1), int32(gap)
	if n := at.next; n > 0 && int(n) < len(s.predicted) {
		taken = s.predicted[n]
		to := place{a.Match(at.Place, taken), n + 1}
		p := s.trust.of(n+beginning, 1)
		d.kids = append(d.kids, candidate{parent: node, token: taken, at: to, path: p})
		rest -= p
	}
	for range d.o.Levels {
		if at.State <= 0 || at.Length < int32(d.o.Min) {
			break
		}
		from, total, newest := len(d.kids), 0.0, -1
		looked := 0
		for e := a.First(at.State); e >= 0 && looked < edgesMost; looked++ {
			edge, next := a.Edge(e)
			token, to := edge.Token, edge.To
			e = next
			if token == gap || token == taken || longer >= 0 && a.Next(longer, token) >= 0 {
				continue
			}
			n := float64(max(a.Count(to), 1))
			total += n
			d.kids = append(d.kids, candidate{parent: node, token: token, at: place{Place: suffix.Place{State: to, Length: at.Length + 1}}, path: n})
			if newest < 0 || latest(a, to) > latest(a, d.kids[newest].at.State) {
				newest = len(d.kids) - 1
			}
		}
		if newest >= 0 {
			d.kids[newest].path += recent
			total += recent
			p := rest * s.trust.of(at.Length, a.Count(at.State))
			for i := from; i < len(d.kids); i++ {
				d.kids[i].path *= p / total
			}
			rest -= p
		}
		longer = at.State
		at.State = a.Link(at.State)
		if at.State > 0 {
			at.Length = a.Length(at.State)
		}
	}
	if s.sampling.Temperature > 0 {
		d.couple(s, a.Len()-s.ahead+depth+1)
	}
	floor := math.Log(float64(d.o.Floor))
	for _, c := range d.kids {
		c.logProb = math.Log(c.path)
		if c.path = path + c.logProb; c.path >= floor {
			d.heap.push(c)
		}
	}
}

// latest is where the strings of a state ended last.
func latest(a *suffix.Automaton, s int32) int32 {
	last, _ := a.Last(s)
	return last
}

// recent is what the continuation that was seen last counts for on top.
const recent = 1

// couple turns probabilities into those given the noise that will meet the candidates at the position.
//
// With noise g the target's token is the one whose −ln p − g is least; so a candidate's e^{−g}/p is its time in a race
// of exponential variables, and the tokens that are no candidates, of probability r together, come first by
// then with probability 1 − e^{−r·time}. Among the candidates the fastest would win for sure if p were the
// target's; as it is a guess, the times compete softly.
func (d *drafter) couple(s *state, position int) {
	rest, sum := 1.0, 0.0
	for i := range d.kids {
		c := &d.kids[i]
		rest -= c.path
		speed := c.path * math.Exp(sample.Noise(s.sampling.Seed, position, c.token))
		c.logProb = speed
		sum += speed * speed
	}
	rest = max(rest, 0.01)
	for i := range d.kids {
		c := &d.kids[i]
		c.path = c.logProb * c.logProb / sum * math.Exp(-rest/c.logProb)
	}
}

// frontier is a heap of candidates, the likeliest first, ties to the one that would be drafted nearer the root and earlier.
type frontier []candidate

func (f frontier) before(i, j int) bool {
	a, b := &f[i], &f[j]
	switch {
	case a.path != b.path:
		return a.path > b.path
	case a.parent != b.parent:
		return a.parent < b.parent
	}
	return a.token < b.token
}

func (f *frontier) push(c candidate) {
	h := append(*f, c)
	for i := len(h) - 1; i > 0; {
		p := (i - 1) / 2
		if !h.before(i, p) {
			break
		}
		h[i], h[p] = h[p], h[i]
		i = p
	}
	*f = h
}

func (f *frontier) pop() candidate {
	h := *f
	top := h[0]
	n := len(h) - 1
	h[0] = h[n]
	h = h[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h.before(c+1, c) {
			c++
		}
		if !h.before(c, i) {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	*f = h
	return top
}
