// What speaks for a token below a node of a conditioned tree: the head's row of the depth, and what followed in the text.

package jet

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
	noise  float32 // temperature · the noise that the token will meet
	class  int8    // of the longest match that it followed, see matchClass; 0: it followed none
	longer bool    // there was a longer match, which it did not follow
	share  float32 // logarithm of the share of the match's occurrences that it followed
	latest bool    // it followed the latest occurrence of the longest match
	agreed bool    // and the one before
}

// spot is what is known of a node that is to get children.
type spot struct {
	depth  int     // of the children
	headed bool    // the head has a row for them
	class  int8    // of the longest match
	strays bool    // the path left the head's first guesses
	beyond float32 // logarithm of the probability, as the head has it, of all tokens that are no clues of its
	last   float32 // temperature · score of the last of those that are
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

const (
	headMost    = 16  // candidates of the head's that a node looks at
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

// level readies the head's clues of a depth.
func (s *state) level(depth int, clues []clue) []clue {
	p := s.sampler.Params()
	t := scale(p.Temperature)
	for _, c := range s.levels[depth-1] {
		x := clue{token: c.Token, head: max(t*c.LogProb, headFloor), sure: sure(c.LogProb)}
		if s.warm > 0 {
			x.noise = t * float32(c.Score-float64(c.LogProb))
		}
		clues = append(clues, x)
	}
	return clues
}

// gather finds the clues for tokens of a depth, below a path of which at is the longest match: those of the head first.
func (s *state) gather(root int32, at suffix.Place, depth int, strays bool, clues []clue) (spot, []clue) {
	x := spot{depth: depth, class: matchClass(at.Length), strays: strays}
	if x.headed = depth <= s.depth && len(s.levels[depth-1]) > 0; x.headed {
		clues = s.level(depth, clues)
		level := s.levels[depth-1]
		rest := 1.0
		for i := range level {
			rest -= math.Exp(float64(level[i].LogProb))
		}
		p := s.sampler.Params()
		x.beyond = float32(math.Log(max(rest, 1e-7)))
		x.last = max(scale(p.Temperature)*float32(level[len(level)-1].Score), headFloor)
	}
	heads := len(clues)
	a := s.text
	longer := int32(-1)
	for m := 0; m < matchesMost && at.State > 0; m++ {
		class := matchClass(at.Length)
		total := float64(max(a.Count(at.State), 1))
		if m == 0 {
			last, before := a.Last(at.State)
			token := s.follows(last, root)
			i := s.clueOf(&clues, heads, token, depth)
			clues[i].latest, clues[i].class = true, class
			clues[i].agreed = before > 0 && s.follows(before, root) == token
			clues[i].share = float32(math.Log(1 / total))
		}
		edge, next := suffix.Edge{}, a.First(at.State)
		for looked := 0; next >= 0 && looked < edgesMost; looked++ {
			edge, next = a.Edge(next)
			if longer >= 0 && a.Next(longer, edge.Token) >= 0 {
				continue
			}
			i := s.clueOf(&clues, heads, edge.Token, depth)
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
	return x, clues
}

// follows is the token at a place of the text; the root comes after it.
func (s *state) follows(at, root int32) int32 {
	if int(at) < len(s.tokens) {
		return s.tokens[at]
	}
	return root
}

// clueOf is the number of a token's clue, which is added if there is none.
func (s *state) clueOf(clues *[]clue, heads int, token int32, depth int) int {
	if i := slices.IndexFunc(*clues, func(c clue) bool { return c.token == token }); i >= 0 {
		return i
	}
	c := clue{token: token}
	p := s.sampler.Params()
	t := scale(p.Temperature)
	if heads > 0 {
		row, first := s.d.out.Row(s.first+depth-1), &s.levels[depth-1][0]
		c.head = t*first.LogProb + row[token] - row[first.Token]
		if s.chosen { // by more than logits: the token could well be one that is shut out
			level := s.levels[depth-1]
			c.head = min(c.head, t*level[len(level)-1].LogProb)
		}
		c.head = min(max(c.head, headFloor), 0)
		c.sure = sure(c.head / t)
	}
	if s.warm > 0 {
		c.noise = t * float32(sample.Noise(p.Seed, s.at+depth, token))
	}
	*clues = append(*clues, c)
	return len(*clues) - 1
}

// sure is the root of a probability, given its logarithm.
func sure(logProb float32) float32 { return float32(math.Exp(float64(logProb) / 2)) }
