// The most probable prefixes.

package clues

import (
	"math"

	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// MostProbable grows DDTree's tree: of all prefixes the most probable, as many as the budget allows. A prefix is less probable than the
// one it extends, and than the one whose last token ranks before its own; so when those two open it, the next of all is always
// among the open ones.
type MostProbable struct {
	Width int     // children of a node at most; 0: no limit
	Least float64 // chance of a path at least; 0: any

	heap  Frontier
	floor float64              // logarithm of Least
	lists [][]sample.Candidate // below each node
}

// Source has the candidates below the nodes of a tree, the likeliest first: Score is the logarithm of the chance given the parent.
type Source interface {
	// Below is called once for every node, the root's first, when it has been added. The list lasts until the tree is grown.
	Below(t *tree.Tree, node int) []sample.Candidate
}

// Grow appends to t, which holds its root, up to budget nodes in all.
func (m *MostProbable) Grow(t *tree.Tree, from Source, budget int) {
	m.heap.Reset()
	m.floor = math.Log(m.Least)
	m.lists = append(m.lists[:0], from.Below(t, 0))
	m.open(Opening{})
	for m.heap.Len() > 0 && t.Len() < budget {
		o := m.heap.Pop()
		c := m.lists[o.Node][o.Rank]
		m.open(Opening{Sum: o.Sum, Node: o.Node, Rank: o.Rank + 1})
		n := t.Len()
		if node := t.Append(int(o.Node), c.Token, c.LogProb); node == n {
			m.lists = append(m.lists, from.Below(t, node))
			m.open(Opening{Sum: o.Score, Node: int32(node)})
		}
	}
}

// open puts the child of a rank on the heap, if the node has one; Sum is the node's.
func (m *MostProbable) open(o Opening) {
	list, rank := m.lists[o.Node], int(o.Rank)
	if rank >= len(list) || m.Width > 0 && rank >= m.Width {
		return
	}
	if c := &list[rank]; Possible(c) {
		if o.Score = o.Sum + c.Score; o.Score >= m.floor {
			m.heap.Push(o)
		}
	}
}

// Possible reports whether a candidate has a chance at all.
func Possible(c *sample.Candidate) bool { return c.Score > math.Inf(-1) } // not so NaN
