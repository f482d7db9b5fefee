// The most probable prefixes.

package clues

import (
	"math"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// MostProbable grows DDTree's tree: of all prefixes the most probable, as many as the budget allows. A prefix is less probable than the
// one it extends, and than the one whose last token ranks before its own; so when those two open it, the next of all is always
// among the open ones.
type MostProbable struct {
	Width int     // children of a node at most; 0: no limit
	Least float64 // chance of a path at least; 0: any

	// Value makes the scores of candidates when they are looked at, as most never are: as Value does, for the Guide.
	Value bool
	Guide draft.Guide

	heap  Frontier
	floor float64              // logarithm of Least
	lists [][]sample.Candidate // below each node
}

// Source has the candidates below the nodes of a tree, the likeliest first: Score is the logarithm of the chance given the parent, unless
// it is to be made.
type Source interface {
	// Below is called once for every node, the root's first, when it has been added. The list lasts until the tree is grown.
	Below(t *tree.Tree, node int) []sample.Candidate
}

// Grow appends to t, which holds its root, up to budget nodes in all.
func (m *MostProbable) Grow(t *tree.Tree, from Source, budget int) {
	m.heap.Reset()
	m.floor = math.Log(m.Least)
	m.lists = append(m.lists[:0], from.Below(t, 0))
	m.open(t, Opening{})
	for m.heap.Len() > 0 && t.Len() < budget {
		o := m.heap.Pop()
		c := m.lists[o.Node][o.Rank]
		m.open(t, Opening{Sum: o.Sum, Node: o.Node, Rank: o.Rank + 1})
		n := t.Len()
		if node := t.Append(int(o.Node), c.Token, c.LogProb); node == n {
			m.lists = append(m.lists, from.Below(t, node))
			m.open(t, Opening{Sum: o.Score, Node: int32(node)})
		}
	}
}

// open puts the child of a rank on the heap, if the node has one; Sum is the node's.
func (m *MostProbable) open(t *tree.Tree, o Opening) {
	list, rank := m.lists[o.Node], int(o.Rank)
	if rank >= len(list) || m.Width > 0 && rank >= m.Width {
		return
	}
	if m.Value { // of those before it were made before
		value(m.Guide, int(t.Depth[o.Node])+1, list, rank)
	}
	if c := &list[rank]; Possible(c) {
		if o.Score = o.Sum + c.Score; o.Score >= m.floor {
			m.heap.Push(o)
		}
	}
}

// Value makes the scores of candidates: the logarithms of their chances, as the guide has them if there is one.
func Value(g draft.Guide, depth int, c []sample.Candidate) {
	for rank := range c {
		value(g, depth, c, rank)
	}
}

// value makes the score of one. A later place is not worth more, whatever chances were learned.
func value(g draft.Guide, depth int, c []sample.Candidate, rank int) {
	last := 0.0
	if rank > 0 {
		last = c[rank-1].Score
	}
	p := float32(math.Exp(float64(c[rank].LogProb))) // as a guide says it that believes: equal numbers, and the same tree where paths tie
	if g != nil {
		p = g.Chance(depth, c[rank].LogProb)
	}
	c[rank].Score = min(math.Log(float64(p)), last)
}

// Possible reports whether a candidate has a chance at all.
func Possible(c *sample.Candidate) bool { return c.Score > math.Inf(-1) } // not so NaN
