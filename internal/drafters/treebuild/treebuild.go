// Package treebuild builds draft trees best first. A Source has the candidates below each node. The
// Builder takes the nodes of the most probable paths, as many as the budget allows. The shapes that
// papers define are settings of it:
//
//   - The most probable prefixes, one node at a time (DDTree, arXiv 2604.12989): the zero Builder.
//   - All children of the best node at once (JetSpec's Algorithm 1): Whole, with a Width.
//   - A chain: a Width of 1.
//   - A static tree (Medusa, arXiv 2401.10774): a Template.
//
// A path is less probable than its beginning, and than the path whose last token ranks before its
// own. So the next node is always the next child of a node in the tree, or the first child of the
// node added last: one heap holds them.
package treebuild

import (
	"math"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Source has the candidates below the nodes of a tree.
type Source interface {
	// Below is called once for every node, the root first, when it has been added. It returns the
	// node's candidates, the most probable first. LogProb is the logarithm of the probability given
	// the node. The list must last until the tree is built, and the Builder sets its Scores.
	Below(t *tree.Tree, node int) []sample.Candidate
}

// Builder builds trees, one at a time. It reuses its memory.
type Builder struct {
	Width int     // most children of a node; 0: any number
	Least float64 // least probability of a path; 0: any
	// Guide corrects probabilities by measured acceptance, and ends paths that are worth less than half the cost of
	// a row; nil: probabilities are used as they are.
	Guide draft.Guide

	// Whole adds all children of the best node at once. Nodes then come in the order of Order, given
	// the log-probability of the path to a node and its depth; nil: of the log-probability.
	Whole bool
	Order func(path float64, depth int) float64

	// Template is the shape of a static tree, whatever the probabilities are: the parents of nodes 1,
	// 2 and so on. The k-th child of a node is its candidate of rank k. A node without a candidate is
	// left out, with those below it. Nil: trees are built best first.
	Template []int32

	heap  heap
	least float64              // logarithm of Least
	lists [][]sample.Candidate // below each node

	places, ranks []int32 // of the template's nodes: places in the tree, -1: none; and children so far
}

// Build appends to t, which holds its root, up to budget nodes in all.
func (b *Builder) Build(t *tree.Tree, from Source, budget int) {
	b.lists = append(b.lists[:0], from.Below(t, 0))
	if b.Template != nil {
		b.fill(t, from, budget)
		return
	}
	b.heap.entries, b.heap.pushed = b.heap.entries[:0], 0
	b.least = math.Log(max(b.Least, float64(1-Value(b.Guide, 1))/2))
	b.offer(t, 0, 0, 0)
	for len(b.heap.entries) > 0 && t.Len() < budget {
		e := b.heap.pop()
		rank := int(e.rank)
		for {
			c := b.lists[e.node][rank]
			rank++
			if !b.Whole { // before the children, so that it comes first among equals
				b.offer(t, int(e.node), rank, e.path)
			}
			n := t.Len()
			if node := t.Append(int(e.node), c.Token, c.LogProb); node == n {
				b.lists = append(b.lists, from.Below(t, node))
				b.offer(t, node, 0, e.path+c.Score)
			}
			if !b.Whole || t.Len() >= budget || !b.has(t, int(e.node), rank) {
				break
			}
		}
	}
}

// fill gives the template's nodes their candidates, up to the budget.
func (b *Builder) fill(t *tree.Tree, from Source, budget int) {
	b.places, b.ranks = append(b.places[:0], 0), append(b.ranks[:0], 0)
	for _, parent := range b.Template {
		node, rank := b.places[parent], b.ranks[parent]
		b.ranks[parent]++
		place := int32(-1)
		if node >= 0 && t.Len() < budget && b.has(t, int(node), int(rank)) {
			c := b.lists[node][rank]
			place = int32(t.Append(int(node), c.Token, c.LogProb))
			if int(place) == len(b.lists) {
				b.lists = append(b.lists, from.Below(t, int(place)))
			}
		}
		b.places, b.ranks = append(b.places, place), append(b.ranks, 0)
	}
}

// offer puts the child of a rank below a node on the heap, if there is one. path is the
// log-probability of the path to the node.
func (b *Builder) offer(t *tree.Tree, node, rank int, path float64) {
	if !b.has(t, node, rank) {
		return
	}
	e := entry{score: path, path: path, node: int32(node), rank: int32(rank)}
	switch {
	case !b.Whole:
		e.score += b.lists[node][rank].Score
	case b.Order != nil:
		e.score = b.Order(path, int(t.Depth[node]))
	}
	if b.Whole || e.score >= b.least {
		b.heap.push(e)
	}
}

// has reports whether a node has a possible child with a rank, and sets its Score. A later rank is
// never worth more, whatever the guide measured.
func (b *Builder) has(t *tree.Tree, node, rank int) bool {
	list := b.lists[node]
	if rank >= len(list) || b.Width > 0 && rank >= b.Width {
		return false
	}
	last := 0.0
	if rank > 0 {
		last = list[rank-1].Score
	}
	c := &list[rank]
	p := float32(math.Exp(float64(c.LogProb)))
	if b.Guide != nil {
		p = b.Guide.Chance(int(t.Depth[node])+1, c.LogProb)
	}
	c.Score = min(math.Log(float64(p)), last)
	return c.Score > math.Inf(-1) // not so NaN
}

// FirstChance returns the probability of the most probable candidate below a node of the last tree, or 0.
func (b *Builder) FirstChance(node int) float64 {
	if len(b.lists[node]) == 0 {
		return 0
	}
	return math.Exp(b.lists[node][0].Score)
}

// Chance returns the probability that a node is accepted if its parent is: as measured by a guide, or
// without one the drafter's own. It is 0 if the drafter's is not a number.
func Chance(g draft.Guide, depth int, logProb float32) float32 {
	p := float32(math.Exp(float64(logProb)))
	if g != nil {
		p = g.Chance(depth, logProb)
	}
	if !(p > 0) { // NaN too
		return 0
	}
	return min(p, 1)
}

// Value returns the guide's value of a chance, or without a guide the chance.
func Value(g draft.Guide, chance float32) float32 {
	if g == nil {
		return chance
	}
	return g.Value(chance)
}

// entry is a node whose child with a rank may be added.
type entry struct {
	score float64
	path  float64 // log-probability of the path to the node
	node  int32
	rank  int32
	order int32 // of equal scores the entry that was pushed first comes first
}

func (a *entry) before(b *entry) bool {
	return a.score > b.score || a.score == b.score && a.order < b.order
}

// heap is a binary heap, the best entry first. container/heap would allocate for each entry.
type heap struct {
	entries []entry
	pushed  int32
}

func (f *heap) push(e entry) {
	e.order = f.pushed
	f.pushed++
	h := append(f.entries, e)
	i := len(h) - 1
	for ; i > 0 && e.before(&h[(i-1)/2]); i = (i - 1) / 2 {
		h[i] = h[(i-1)/2]
	}
	h[i] = e
	f.entries = h
}

func (f *heap) pop() entry {
	h := f.entries
	top, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&e) {
			break
		}
		h[i] = h[c]
		i = c
	}
	if len(h) > 0 {
		h[i] = e
	}
	f.entries = h
	return top
}
