package lookup

import (
	"cmp"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/drafters/suffix"
	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// place is what is known at a node of the tree: the longest match, and how much of the predicted
// output the output so far repeats (-1: it differs).
type place struct {
	suffix.Place
	kept  int
	alive textstore.Alive // matches in texts of the past
}

// Below implements treebuild.Source.
func (d *drafter) Below(t *tree.Tree, node int) []sample.Candidate {
	s := d.s
	token := t.Token[node]
	depth := int(t.Depth[node])
	at := place{Place: s.text.End(), kept: s.kept}
	if parent := t.Parent[node]; parent >= 0 {
		at = d.nodes[parent]
		at.alive = s.recalled.Follow(at.alive, depth, token)
	} else if s.memory != nil {
		at.alive = s.recalled.Find(s.memory, append(s.tokens[max(0, len(s.tokens)-textstore.MatchMost):], token))
	}
	at.kept = s.keep(at.kept, token)
	at.Place = s.text.Match(at.Place, token)
	d.nodes = append(d.nodes, at)
	for len(d.lists) <= node {
		d.lists = append(d.lists, nil)
	}
	list := d.lists[node][:0]
	if depth < d.most && (at.State > 0 || at.alive != 0) {
		list = d.continuations(list, at, depth)
		for i := range list {
			c := &list[i]
			c.Score = math.Log(c.Score)
			c.LogProb = float32(c.Score)
			if s.sampling.Temperature > 0 {
				noise := sample.Noise(s.sampling.Seed, len(s.tokens)+depth+1, c.Token)
				c.Score += noise * float64(min(s.sampling.Temperature, 1))
			}
		}
		slices.SortStableFunc(list, func(a, b sample.Candidate) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Token, b.Token))
		})
		if s.sampling.Temperature > 0 {
			treebuild.CoupledChances(list, len(list), s.sampling.Temperature)
		}
	}
	d.lists[node] = list
	return list
}

const (
	edgesMost = 48 // continuations of one match that are considered, the newest first
	recent    = 1  // extra count of the continuation seen last
)

// continuations lists the continuations of a place; Score is the probability. Those from past texts
// and from the longest match in the text come first, and add up where they agree. The probability
// that none of them is the next token goes to the next shorter match, for continuations not seen
// yet, and so on (prediction by partial matching).
func (d *drafter) continuations(list []sample.Candidate, at place, depth int) []sample.Candidate {
	s := d.s
	a := d.s.text
	rest := 1.0
	predicted := at.kept >= 0 && at.kept < len(s.predicted)
	if predicted {
		p := chance(at.kept + 1) // so many consecutive tokens were as predicted
		list = append(list, sample.Candidate{Token: s.predicted[at.kept], Score: p})
		rest -= p
	}
	list, p := d.recall(list, at, depth, rest)
	rest -= p
	recalled := len(list)
	longer := int32(-1)
	for level := 0; level < d.o.Levels && at.State > 0 && at.Length >= int32(d.o.Min); level++ {
		d.found = d.found[:0]
		total := 0.0
		newest := -1
		latest := int32(0)
		for edge := range a.After(at.State, longer, edgesMost) {
			known := find(list[:recalled], edge.Token)
			if edge.Token == gap || known >= 0 && (level > 0 || predicted && known == 0) {
				continue
			}
			n := float64(max(a.Count(edge.To), 1))
			total += n
			if last, _ := a.Last(edge.To); newest < 0 || last > latest {
				newest, latest = len(d.found), last
			}
			d.found = append(d.found, sample.Candidate{Token: edge.Token, Score: n})
		}
		if newest >= 0 {
			d.found[newest].Score += recent
			total += recent
			p := rest * chance(int(at.Length))
			for _, c := range d.found {
				c.Score *= p / total
				if known := find(list[:recalled], c.Token); known >= 0 {
					list[known].Score += c.Score
				} else {
					list = append(list, c)
				}
			}
			rest -= p
		}
		longer, at.Place = at.State, a.Shorter(at.Place)
	}
	return list
}

// chance returns the probability that a match of a length has the next token among its continuations,
// by the rule of succession. The controller measures how accurate it is.
func chance(length int) float64 { return float64(length) / float64(length+1) }

// find returns the place of a token in a list, or -1.
func find(list []sample.Candidate, token int32) int {
	return slices.IndexFunc(list, func(c sample.Candidate) bool { return c.Token == token })
}

// recall lists continuations from past texts. It returns the part of the remaining probability rest
// that goes to them: the longer they have matched compared with the longest match in the text itself,
// the more.
func (d *drafter) recall(list []sample.Candidate, at place, depth int, rest float64) ([]sample.Candidate, float64) {
	s := d.s
	var room [16]textstore.Continuation
	next, length, matches := s.recalled.Next(room[:0], at.alive, depth+1)
	if matches == 0 {
		return list, 0
	}
	p := rest * chance(length)
	if at.State > 0 && at.Length >= int32(d.o.Min) {
		p *= float64(length) / float64(length+int(at.Length))
	}
	total := float64(matches + recent)
	from := len(list)
	for _, c := range next {
		n := float64(c.Count)
		if c.First {
			n += recent
		}
		if from == 0 || list[0].Token != c.Token { // otherwise it is the predicted one
			list = append(list, sample.Candidate{Token: c.Token, Score: p * n / total})
		}
	}
	return list, p
}
