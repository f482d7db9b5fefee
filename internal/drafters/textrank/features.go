// Package textrank ranks draft tokens by more than a drafter's probabilities: also by the tokens that
// followed the same tokens earlier in the text (n-grams), and by the target's logits at nodes off the
// accepted paths (OffPath). It is the modifier +text.
//
// Every token that one of these sources names has features. A softmax over weighted sums of them
// gives its probability.
package textrank

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/sample"
)

// features of a candidate token.
type features struct {
	token     int32
	drafter   float32 // temperature · the drafter's log-probability (at temperature 0 that of the softmax)
	root      float32 // the square root of that probability
	rank      float32 // correction of the log-probability by a rank head
	noise     float32 // temperature · the noise that the target adds for the token
	class     int8    // of the longest n-gram that the token followed, see matchClass; 0: it followed none
	shorter   bool    // a longer n-gram occurred, and the token did not follow it
	share     float32 // logarithm of the share of the n-gram's occurrences that the token followed
	latest    bool    // the token followed the latest occurrence of the longest n-gram
	lastTwice bool    // and the occurrence before that one
	offPath   bool    // the off-path entry has the token
	first     bool    // the token is the entry's first
	gap       float32 // the token's score there minus the first's
}

// nodeFeatures are those of a node whose candidates are ranked.
type nodeFeatures struct {
	depth  int     // of the candidates, counted from the hidden states that the drafter read
	hasRow bool    // the drafter computed a row for them
	class  int8    // of the longest n-gram
	offTop bool    // the path left the drafter's first candidates
	beyond float32 // the drafter's log-probability of all tokens that have no features
	last   float32 // temperature · score of the drafter's last candidate
	rank   float32 // features.rank of all tokens beyond
	agree  int     // agreement with the off-path entry; see agreeAny
}

// N-grams of about the same length predict about as well.
const matchClasses = 7

// matchClass returns the class of a length: 0, 1, 2, 3, 4 to 7, 8 to 15, and more tokens.
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

// RowMost is the maximum number of a row's candidates that are ranked below a node.
const RowMost = 16

const (
	ngramsMost = 3   // n-grams of different lengths
	edgesMost  = 12  // continuations of each, the newest first
	logFloor   = -15 // of features.drafter and of scores
)

// scale makes candidates comparable across temperatures, in units of logits: log-probabilities and
// noise are multiplied by it (sample.Candidate).
func scale(temperature float32) float32 { return max(temperature, 1) }

// Row has a drafter's results for the tokens below a node.
type Row struct {
	// Top are the row's first candidates, as sample.Sampler.Top ranks them.
	Top   []sample.Candidate
	Depth int // of the tokens, counted from the hidden states that the drafter read

	// Rank corrects log-probabilities by a rank head, by the token's place among the drafter's most
	// probable. The last element applies to all tokens beyond. Empty: there is no rank head.
	Rank []float32

	Output *Output // for tokens not in Top

	Cache *RowCache // keeps the row's features if several nodes share it; nil: they are computed each time
}

// RowCache keeps the features derived from a row's Top and Rank. Its owner resets it when the row
// changes.
type RowCache struct {
	features           []features
	beyond, last, rank float32 // see nodeFeatures
	filled             bool
}

// Reset empties the cache.
func (c *RowCache) Reset() { c.filled = false }

// fill computes the features derived from a row's Top and Rank.
func (x *Text) fill(row *Row, c *RowCache) {
	t := scale(x.temperature)
	top := row.Top[:min(len(row.Top), RowMost)]
	c.features = c.features[:0]
	c.rank = 0
	c.filled = true
	rest := 1.0
	for _, k := range top {
		f := features{token: k.Token, drafter: max(t*k.LogProb, logFloor), root: rootProb(k.LogProb)}
		if x.temperature > 0 {
			f.noise = t * float32(k.Score-float64(k.LogProb))
		}
		c.features = append(c.features, f)
		rest -= math.Exp(float64(k.LogProb))
	}
	c.beyond = float32(math.Log(max(rest, 1e-7)))
	c.last = max(t*float32(top[len(top)-1].Score), logFloor)
	if len(row.Rank) > 0 {
		c.rank = row.rank(c.features)
	}
}

// rank sets the features' rank, and returns the rank of all tokens beyond.
func (row *Row) rank(list []features) (beyond float32) {
	for i := range list {
		place := 0
		for j := range list {
			if list[j].drafter > list[i].drafter || list[j].drafter == list[i].drafter && j < i {
				place++
			}
		}
		list[i].rank = row.Rank[min(place, len(row.Rank)-1)]
	}
	return row.Rank[len(row.Rank)-1]
}

// gather finds the features of the tokens that may follow a context, below a path that ends at
// place. The row's tokens come first. scratch is used for rows without a Cache.
func (x *Text) gather(root int32, place Place, c context, row *Row, offTop bool, list []features,
	scratch *RowCache) (nodeFeatures, []features) {
	depth := c.position + 1 - len(x.tokens)
	at := place.Place
	n := nodeFeatures{depth: row.Depth, class: matchClass(at.Length), offTop: offTop}
	n.hasRow = len(row.Top) > 0
	if n.hasRow {
		c := row.Cache
		if c == nil {
			c = scratch
			c.Reset()
		}
		if !c.filled {
			x.fill(row, c)
		}
		n.beyond = c.beyond
		n.last = c.last
		n.rank = c.rank
		list = append(list, c.features...)
	}
	a := x.automaton
	longer := int32(-1)
	for m := 0; m < ngramsMost && at.State > 0; m++ {
		class := matchClass(at.Length)
		total := float64(max(a.Count(at.State), 1))
		if m == 0 {
			last, before := a.Last(at.State)
			token := x.follows(last, root)
			i := x.indexOf(&list, row, token, depth)
			list[i].latest, list[i].class = true, class
			list[i].lastTwice = before > 0 && x.follows(before, root) == token
			list[i].share = float32(math.Log(1 / total))
		}
		for edge := range a.After(at.State, longer, edgesMost) {
			i := x.indexOf(&list, row, edge.Token, depth)
			f := &list[i]
			if f.class == 0 || m == 0 {
				f.class, f.shorter = class, m > 0
				f.share = float32(math.Log(min(float64(max(a.Count(edge.To), 1))/total, 1)))
			}
		}
		longer, at = at.State, a.Shorter(at)
	}
	list = x.recall(&n, place, row, list, depth)
	var kept []sample.Candidate
	var room [offPathKept]sample.Candidate
	kept, n.agree = x.offPath.find(c, room[:0])
	for i, k := range kept {
		f := &list[x.indexOf(&list, row, k.Token, depth)]
		f.offPath = true
		if n.agree != agreeAny {
			f.first, f.gap = i == 0, float32(k.Score-kept[0].Score)
		}
	}
	return n, list
}

// recall adds the tokens that followed in past texts. If those texts match the end of the text in more
// tokens than the text itself does anywhere, they count as the longest n-gram.
func (x *Text) recall(n *nodeFeatures, place Place, row *Row, list []features, depth int) []features {
	if place.alive == 0 {
		return list
	}
	var room [16]textstore.Continuation
	next, length, matches := x.recalled.Next(room[:0], place.alive, int(place.depth))
	class, longer := matchClass(int32(length)), int32(length) > place.Length
	if matches > 0 && longer {
		n.class = class
	}
	for _, c := range next {
		i := x.indexOf(&list, row, c.Token, depth)
		f := &list[i]
		if f.class == 0 || longer {
			f.class = class
			f.shorter = !longer
			f.share = float32(math.Log(float64(c.Count) / float64(matches)))
			f.latest = f.latest || longer && c.First
		}
	}
	return list
}

// follows returns the token at a place of the text; the root comes after the text.
func (x *Text) follows(at, root int32) int32 {
	if int(at) < len(x.tokens) {
		return x.tokens[at]
	}
	return root
}

// indexOf returns the index of a token's features, and adds them if there are none.
func (x *Text) indexOf(list *[]features, row *Row, token int32, depth int) int {
	if i := slices.IndexFunc(*list, func(f features) bool { return f.token == token }); i >= 0 {
		return i
	}
	f := features{token: token}
	t := scale(x.temperature)
	if top := row.Top; len(top) > 0 {
		above, known := row.Output.above(token, top[0].Token)
		f.drafter = t*top[0].LogProb + above
		if x.processed || !known { // the token may be one that top-k, a penalty or the shortlist excludes
			f.drafter = min(f.drafter, t*top[len(top)-1].LogProb)
		}
		f.drafter = min(max(f.drafter, logFloor), 0)
		f.root = rootProb(f.drafter / t)
		if n := len(row.Rank); n > 0 {
			f.rank = row.Rank[n-1]
		}
	}
	if x.temperature > 0 {
		f.noise = x.temperature * float32(sample.Noise(x.seed, len(x.tokens)+depth, token))
	}
	*list = append(*list, f)
	return len(*list) - 1
}

// rootProb returns the square root of a probability, given its logarithm.
func rootProb(logProb float32) float32 { return float32(math.Exp(float64(logProb) / 2)) }
