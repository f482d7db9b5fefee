// Package clues grows the most probable trees, where what is known of the tokens below a node comes from several sides: a head's row,
// what followed the node's path in the text so far, and what the target said beside the paths of trees before (draft.Asides).
//
// Each token that any of them names has clues, which a multinomial logit with fitted weights makes a chance of. The nodes of the
// likeliest paths are the tree; each gets its candidates when it is added.
package clues

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/suffix"
	"github.com/grovellm/grove/sample"
)

// clue is what is known of a candidate.
type clue struct {
	token  int32
	head   float32 // temperature · log-probability as the head has it (at temperature 0 of the softmax)
	sure   float32 // the root of that probability
	rank   float32 // what a rank head makes of that probability's logarithm, less the logarithm
	noise  float32 // temperature · the noise that the token will meet
	class  int8    // of the longest match that it followed, see matchClass; 0: it followed none
	longer bool    // there was a longer match, which it did not follow
	share  float32 // logarithm of the share of the match's occurrences that it followed
	latest bool    // it followed the latest occurrence of the longest match
	agreed bool    // and the one before
}

// spot is what is known of a node that is to get children.
type spot struct {
	at     int     // how far the children are from what the head read, as a depth
	headed bool    // the head has a row for them
	class  int8    // of the longest match
	strays bool    // the path left the head's first guesses
	beyond float32 // logarithm of the probability, as the head has it, of all tokens that are no clues of its
	last   float32 // temperature · score of the last of those that are
	rank   float32 // clue.rank of what is beyond
}

// Matches of about the same length foretell about as well.
const matchClasses = 7

// matchClass of 0, 1, 2, 3, 4 to 7, 8 to 15, and more tokens.
func matchClass(length int32) int8 {
	switch {
	case length <= 3:
		return int8(length)
	case length <= 7:
		return 4
	case length <= 15:
		return 5
	}
	return 6
}

// HeadMost candidates of the head's are looked at below a node.
const HeadMost = 16

const (
	matchesMost = 3   // matches of different lengths
	edgesMost   = 12  // continuations of each
	headFloor   = -15 // of clue.head: what is less likely than so is so likely
)

// scale is what logits of noise and head are multiplied by, to be compared over temperatures.
func scale(temperature float32) float32 {
	if temperature == 0 {
		return 1
	}
	return temperature
}

// Row is what a head says of the tokens below a node.
type Row struct {
	// Level is its first in the race of their position, of at least a few, the first of them first: what sample.Top finds.
	Level []sample.Candidate
	At    int // how far they are from what the head read, as a depth: it says how well the head foretells

	// Rank has, of a head that foretells it, how much more the logarithm of a token's probability should be, by the token's place among
	// the head's likeliest; the last is of all beyond. Empty: nothing is foretold.
	Rank []float32

	Head   Head // for tokens not in Level
	Number int  // of the row, for Head

	Heard *Heard // keeps what Level and Rank come to, for a row that is of several nodes; nil: it is made each time
}

// Heard is what a row's Level and Rank come to as clues. Who keeps one resets it where the row changes.
type Heard struct {
	clues              []clue
	beyond, last, rank float32 // see spot
	made               bool
}

// Reset forgets it.
func (h *Heard) Reset() { h.made = false }

// Head knows more of its rows.
type Head interface {
	// Above is by how much the logit of a token is above that of another, which the row's Level has. known is false where the head did
	// not compute it.
	Above(row int, token, other int32) (difference float32, known bool)
}

// hear makes what a row's Level and Rank come to.
func (x *Text) hear(row *Row, h *Heard) {
	t := scale(x.temperature)
	level := row.Level[:min(len(row.Level), HeadMost)]
	h.clues, h.rank, h.made = h.clues[:0], 0, true
	rest := 1.0
	for _, c := range level {
		k := clue{token: c.Token, head: max(t*c.LogProb, headFloor), sure: sure(c.LogProb)}
		if x.temperature > 0 {
			k.noise = t * float32(c.Score-float64(c.LogProb))
		}
		h.clues = append(h.clues, k)
		rest -= math.Exp(float64(c.LogProb))
	}
	h.beyond = float32(math.Log(max(rest, 1e-7)))
	h.last = max(t*float32(level[len(level)-1].Score), headFloor)
	if len(row.Rank) > 0 {
		h.rank = row.rank(h.clues)
	}
}

// rank gives the head's clues what it foretells of their places, and returns what it foretells of all beyond.
func (row *Row) rank(clues []clue) (beyond float32) {
	for i := range clues {
		place := 0
		for j := range clues {
			if clues[j].head > clues[i].head || clues[j].head == clues[i].head && j < i {
				place++
			}
		}
		clues[i].rank = row.Rank[min(place, len(row.Rank)-1)]
	}
	return row.Rank[len(row.Rank)-1]
}

// gather finds the clues for the tokens of a depth, below a path of which at is the longest match: those of the head first. own is for
// rows that keep nothing.
func (x *Text) gather(root int32, at suffix.Place, depth int, row *Row, strays bool, clues []clue, own *Heard) (spot, []clue) {
	p := spot{at: row.At, class: matchClass(at.Length), strays: strays}
	if p.headed = len(row.Level) > 0; p.headed {
		h := row.Heard
		if h == nil {
			h = own
			h.Reset()
		}
		if !h.made {
			x.hear(row, h)
		}
		p.beyond, p.last, p.rank = h.beyond, h.last, h.rank
		clues = append(clues, h.clues...)
	}
	a := x.automaton
	longer := int32(-1)
	for m := 0; m < matchesMost && at.State > 0; m++ {
		class := matchClass(at.Length)
		total := float64(max(a.Count(at.State), 1))
		if m == 0 {
			last, before := a.Last(at.State)
			token := x.follows(last, root)
			i := x.clueOf(&clues, row, token, depth)
			clues[i].latest, clues[i].class = true, class
			clues[i].agreed = before > 0 && x.follows(before, root) == token
			clues[i].share = float32(math.Log(1 / total))
		}
		edge, next := suffix.Edge{}, a.First(at.State)
		for looked := 0; next >= 0 && looked < edgesMost; looked++ {
			edge, next = a.Edge(next)
			if longer >= 0 && a.Next(longer, edge.Token) >= 0 {
				continue
			}
			i := x.clueOf(&clues, row, edge.Token, depth)
			c := &clues[i]
			if c.class == 0 || m == 0 {
				c.class, c.longer = class, m > 0
				c.share = float32(math.Log(min(float64(max(a.Count(edge.To), 1))/total, 1)))
			}
		}
		longer = at.State
		at.State = a.Link(at.State)
		if at.State > 0 {
			at.Length = a.Length(at.State)
		}
	}
	return p, clues
}

// follows is the token at a place of the text; the root comes after it.
func (x *Text) follows(at, root int32) int32 {
	if int(at) < len(x.tokens) {
		return x.tokens[at]
	}
	return root
}

// clueOf is the number of a token's clue, which is added if there is none.
func (x *Text) clueOf(clues *[]clue, row *Row, token int32, depth int) int {
	if i := slices.IndexFunc(*clues, func(c clue) bool { return c.token == token }); i >= 0 {
		return i
	}
	c := clue{token: token}
	t := scale(x.temperature)
	if level := row.Level; len(level) > 0 {
		above, known := row.Head.Above(row.Number, token, level[0].Token)
		c.head = t*level[0].LogProb + above
		if x.chosen || !known { // by more than logits: the token could well be one that is shut out
			c.head = min(c.head, t*level[len(level)-1].LogProb)
		}
		c.head = min(max(c.head, headFloor), 0)
		c.sure = sure(c.head / t)
		if n := len(row.Rank); n > 0 {
			c.rank = row.Rank[n-1]
		}
	}
	if x.temperature > 0 {
		c.noise = t * float32(sample.Noise(x.seed, len(x.tokens)+depth, token))
	}
	*clues = append(*clues, c)
	return len(*clues) - 1
}

// sure is the root of a probability, given its logarithm.
func sure(logProb float32) float32 { return float32(math.Exp(float64(logProb) / 2)) }
