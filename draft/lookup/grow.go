package lookup

import (
	"cmp"
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/suffix"
	"github.com/grovellm/grove/internal/textstore"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// place is what is known at a node of the tree: the longest match, and, while all output is the
// beginning of the predicted one, the index of the predicted token that comes next (0: it is not).
type place struct {
	suffix.Place
	next  int32
	alive textstore.Alive // matches in texts of the past
}

// candidate is a token that may follow a node.
type candidate struct {
	token int32
	to    int32   // state of the match that goes on with the token
	p     float64 // weight, and then probability
}

// grow builds the tree of the most probable continuations.
func (d *drafter) grow(s *state, r *draft.Request) {
	d.s, d.most = s, r.Depth
	d.nodes = d.nodes[:0]
	d.builder.Least = float64(d.o.Floor)
	d.builder.Build(r.Tree, d, r.Budget)
	d.s = nil
}

// Below is treebuild.Source's.
func (d *drafter) Below(t *tree.Tree, node int) []sample.Candidate {
	a, token := d.s.text, t.Token[node]
	at := place{Place: a.End()}
	depth := int(t.Depth[node])
	if parent := t.Parent[node]; parent >= 0 {
		at = d.nodes[parent]
		at.alive = d.s.recalled.Follow(at.alive, depth, token)
		if n := at.next; n > 0 && int(n) < len(d.s.predicted) && d.s.predicted[n] == token {
			at.next++
		} else {
			at.next = 0
		}
	} else if d.s.foretold(token) {
		at.next = int32(d.s.kept + 1)
	}
	if node == 0 && d.s.memory != nil {
		at.alive = d.s.recalled.Find(d.s.memory, append(d.s.tail, token))
	}
	at.Place = a.Match(at.Place, token)
	d.nodes = append(d.nodes, at)
	for len(d.lists) <= node {
		d.lists = append(d.lists, nil)
	}
	list := d.lists[node][:0]
	if depth < d.most && (at.State > 0 || at.alive != 0) {
		d.continuations(d.s, at, depth)
		if d.s.sampling.Temperature > 0 {
			d.couple(d.s, a.Len()-d.s.ahead+depth+1)
		}
		for _, c := range d.kids {
			list = append(list, sample.Candidate{Token: c.token, LogProb: float32(math.Log(c.p))})
		}
		slices.SortStableFunc(list, func(a, b sample.Candidate) int {
			if a.LogProb != b.LogProb {
				return cmp.Compare(b.LogProb, a.LogProb)
			}
			return cmp.Compare(a.Token, b.Token)
		})
	}
	d.lists[node] = list
	return list
}

// edgesMost bounds the continuations of one match that are looked at, the newest first.
const edgesMost = 48

// continuations lists what may follow a place. The longest match comes first. The share of the
// probability in which its continuations do not hold the next token goes to the next shorter match,
// for continuations not seen yet, and so on (prediction by partial matching).
func (d *drafter) continuations(s *state, at place, depth int) {
	a := s.text
	d.kids = d.kids[:0]
	rest := 1.0
	longer, taken := int32(-1), int32(gap)
	if n := at.next; n > 0 && int(n) < len(s.predicted) {
		taken = s.predicted[n]
		p := float64(n+1) / float64(n+2) // n tokens in a row were as predicted: the rule of succession
		d.kids = append(d.kids, candidate{token: taken, p: p})
		rest -= p
	}
	rest -= d.recall(s, at, depth, rest)
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
			if token == gap || token == taken || longer >= 0 && a.Next(longer, token) >= 0 ||
				at.alive != 0 && slices.ContainsFunc(d.kids[:from],
					func(k candidate) bool { return k.token == token }) {
				continue
			}
			n := float64(max(a.Count(to), 1))
			total += n
			d.kids = append(d.kids, candidate{token, to, n})
			if newest < 0 || latest(a, to) > latest(a, d.kids[newest].to) {
				newest = len(d.kids) - 1
			}
		}
		if newest >= 0 {
			d.kids[newest].p += recent
			total += recent
			p := rest * s.trust.of(at.Length, a.Count(at.State))
			for i := from; i < len(d.kids); i++ {
				d.kids[i].p *= p / total
			}
			rest -= p
		}
		longer = at.State
		at.State = a.Link(at.State)
		if at.State > 0 {
			at.Length = a.Length(at.State)
		}
	}
}

// recall lists what followed in texts of the past, where these agree with the end of the text in as
// many tokens as the text itself does anywhere, or more. It returns the part of the probability, of
// which rest is left, that goes to them.
func (d *drafter) recall(s *state, at place, depth int, rest float64) float64 {
	if at.alive == 0 {
		return 0
	}
	next, length, matches := s.recalled.Next(d.asked[:0], at.alive, depth+1)
	if d.asked = next; depth == 0 {
		s.asked, s.length, s.matches = append(s.asked[:0], next...), length, matches
	}
	if matches == 0 || at.State > 0 && at.Length > int32(length) {
		return 0
	}
	p := rest * s.past.of(int32(length), int32(matches))
	total := float64(matches + recent)
	from := len(d.kids)
	for _, c := range next {
		n := float64(c.Count)
		if c.First {
			n += recent
		}
		if from == 0 || d.kids[0].token != c.Token { // else it is the predicted one
			d.kids = append(d.kids, candidate{c.Token, -1, p * n / total})
		}
	}
	return p
}

// latest is where the strings of a state ended last.
func latest(a *suffix.Automaton, s int32) int32 {
	last, _ := a.Last(s)
	return last
}

// recent is what the continuation that was seen last counts for on top.
const recent = 1

// couple turns probabilities into those given the noise that will meet the candidates at the
// position.
//
// With noise g the target's token is the one whose −ln p − g is least; so a candidate's e^{−g}/p is
// its time in a race of exponential variables, and the tokens that are no candidates, of
// probability r together, come first by then with probability 1 − e^{−r·time}. Among the candidates
// the fastest would win for sure if p were the target's; as it is a guess, the times compete
// softly.
func (d *drafter) couple(s *state, position int) {
	rest, sum := 1.0, 0.0
	for i := range d.kids {
		c := &d.kids[i]
		rest -= c.p
		c.p *= math.Exp(sample.Noise(s.sampling.Seed, position, c.token)) // its speed
		sum += c.p * c.p
	}
	rest = max(rest, 0.01)
	for i := range d.kids {
		c := &d.kids[i]
		c.p = c.p * c.p / sum * math.Exp(-rest/c.p)
	}
}
