// What the target said beside the path: its choices at nodes that were not accepted foretell its choices to come.

package draft

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Asides are what the target made of nodes beside the accepted paths of a sequence's last trees, at positions that its text has yet to
// reach: the first places of its own race there, which the pass that verified the tree has computed in any case. When the
// text comes to such a position with the same token there, the target, with nearly the same text before it and the same
// noise, mostly chooses the same: the more surely the more tokens before it are the same as well.
type Asides struct {
	text []int32 // committed
	said []aside
	pool []sample.Candidate // asidePlaces of each of said
	old  int                // how many of said were before the last Learn
}

// aside is what the target said after a node.
type aside struct {
	position int
	token    [mostAlike]int32 // at position, and before it; -1 where the tree had none
	node     int32            // in its tree
	places   int
}

const (
	mostAlike   = 3 // tokens before a choice that are compared
	asidePlaces = 8 // of the race that are kept
)

// Asides and drafter are taken together as factors of one softmax: a candidate has agree times the logarithm of its chance as the
// drafter sees it, plus listed if the aside has it, plus gap times what its score there lies behind the first, plus choice
// if it is the first there; all others together have other. By how many tokens are alike, 1 to 3 or more. Where no token is, a
// candidate that is the first of any aside at the position has rumoured more. Fitted to grove's own models on code, prose and arithmetic.
const (
	agree    = 0.6
	listed   = 1.3
	doubted  = 0.8 // for agree, where no token is alike
	rumoured = 0.75
)

var alikeness = [mostAlike]struct{ gap, choice, other float64 }{{.1, 1.5, -3.4}, {.17, 2, -4.1}, {.26, 2.4, -5}}

// Reset forgets everything, for a text of which nothing is committed.
func (a *Asides) Reset() { a.text, a.said, a.old = a.text[:0], a.said[:0], 0 }

// Learn takes in rows that were committed, and says how many of the tree's nodes tell something of positions to come: Hear is to
// be called with each number from 0, on any goroutines, while the rows' Pass lasts.
func (a *Asides) Learn(r *Rows) (fresh int) {
	root := len(a.text)
	a.text = append(a.text, r.Tokens...)
	n := 0
	for i, s := range a.said {
		if s.position >= len(a.text) {
			a.said[n] = s
			copy(a.pool[n*asidePlaces:][:asidePlaces], a.pool[i*asidePlaces:])
			n++
		}
	}
	a.said, a.old = a.said[:n], n
	if r.Pass != nil && r.Next >= 0 {
		t := r.Tree
		for node := range t.Token {
			at := root + int(t.Depth[node])
			if at < len(a.text) {
				continue // nodes of the path among them
			}
			s := aside{position: at, node: int32(node)}
			up := int32(node)
			for i := range s.token {
				s.token[i] = -1
				if up >= 0 {
					s.token[i], up = t.Token[up], t.Parent[up]
				}
			}
			a.said = append(a.said, s)
		}
	}
	size := len(a.said) * asidePlaces
	a.pool = slices.Grow(a.pool[:n*asidePlaces], size-n*asidePlaces)[:size]
	return len(a.said) - n
}

// Hear ranks what the target said at a node that the last Learn counted, with a sampler that chooses as the target's does, over
// the tokens of its vocabulary. h is the committed text, where penalties look at it.
func (a *Asides) Hear(i int, r *Rows, s *sample.Sampler, vocab int, h *sample.History) {
	at := a.old + i
	x := &a.said[at]
	places := a.pool[at*asidePlaces : at*asidePlaces : (at+1)*asidePlaces]
	x.places = len(s.Top(places, r.Pass.Logits(r.Sequence, int(x.node))[:vocab], x.position+1, h))
}

// find is the aside for a node of a tree whose root follows the committed text: the one most alike, the latest of several;
// alike is how many tokens are the same, 0 if there is none.
func (a *Asides) find(t *tree.Tree, node int) (said []sample.Candidate, alike int) {
	at := len(a.text) + int(t.Depth[node])
	for i := len(a.said) - 1; i >= 0; i-- {
		s := &a.said[i]
		if s.position != at || s.token[0] != t.Token[node] {
			continue
		}
		n, up := 1, t.Parent[node]
		for ; n < mostAlike; n++ {
			token := int32(-2)
			if up >= 0 {
				token, up = t.Token[up], t.Parent[up]
			} else if before := at - n; before >= 0 {
				token = a.text[before]
			}
			if token != s.token[n] {
				break
			}
		}
		if n > alike {
			said, alike = a.pool[i*asidePlaces:][:s.places], n
		}
	}
	return said, alike
}

// Weigh puts the candidates below a node of a tree right by what was said there, if anything was: LogProb are logarithms of
// their chances, the largest first, and stay so. Tokens that were said and are not among them are added, up to the capacity of c, or
// take the places of the least likely.
func (a *Asides) Weigh(c []sample.Candidate, t *tree.Tree, node int) []sample.Candidate {
	if len(c) == 0 || len(a.said) == 0 {
		return c
	}
	said, alike := a.find(t, node)
	if len(said) == 0 {
		a.doubt(c, len(a.text)+int(t.Depth[node]))
		return c
	}
	w := &alikeness[alike-1]
	last := agree * c[len(c)-1].LogProb // more than what is known of those that are not candidates
	for i := range c {
		c[i].LogProb *= agree
	}
	for i, x := range said {
		more := listed + w.gap*(x.Score-said[0].Score)
		if i == 0 {
			more += w.choice
		}
		at := 0
		for at < len(c) && c[at].Token != x.Token {
			at++
		}
		if at < len(c) {
			c[at].LogProb += float32(more)
			continue
		}
		x.LogProb = last + float32(more)
		if len(c) < cap(c) {
			c = append(c, x)
			continue
		}
		at = 0
		for k := range c {
			if c[k].LogProb < c[at].LogProb {
				at = k
			}
		}
		if x.LogProb > c[at].LogProb {
			c[at] = x
		}
	}
	settle(c, w.other)
	return c
}

// doubt is Weigh where all that was said at the position was said after other tokens.
func (a *Asides) doubt(c []sample.Candidate, position int) {
	var room [asidesHeard]int32
	first, heard := room[:0], false // what was said first, once each
	for k := range a.said {
		s := &a.said[k]
		if s.position != position {
			continue
		}
		heard = true
		if s.places > 0 && !slices.Contains(first, a.pool[k*asidePlaces].Token) {
			first = append(first, a.pool[k*asidePlaces].Token)
		}
	}
	if !heard {
		return
	}
	rest := -math.Expm1(float64(logSum(c, negInf)))
	for i := range c {
		c[i].LogProb *= doubted
		if slices.Contains(first, c[i].Token) {
			c[i].LogProb += rumoured
		}
	}
	settle(c, doubted*math.Log(max(rest, 1e-9)))
}

// asidesHeard is about how many different tokens are said at a position, and candidatesMost how many candidates there are below a
// node: of more, memory is asked for.
const (
	asidesHeard    = 16
	candidatesMost = 32
)

var negInf = float32(math.Inf(-1))

// settle orders candidates and makes chances of them, where all other tokens together have other.
func settle(c []sample.Candidate, other float64) {
	byChance(c)
	norm := logSum(c, float32(other))
	for i := range c {
		c[i].LogProb -= norm
	}
}

// logSum is the logarithm of what the chances of candidates and of all others add up to.
func logSum(c []sample.Candidate, other float32) float32 {
	var room [candidatesMost + 1]float32
	x := room[:0]
	for i := range c {
		x = append(x, c[i].LogProb)
	}
	return simd.LogSumExp(append(x, other))
}
