// The part of a tree that a budget pays for.

package tree

import (
	"cmp"
	"slices"
)

// Sub makes dst the best connected sub-tree of t with at most budget nodes (root included, which always stays)
// and no node deeper than depth: the nodes with the largest score, ties to the lower index. Each node has a
// score, at most that of its parent; nil stands for path log-probabilities. A path is never more probable than
// its beginning, so those nodes form a tree, and no other tree of that size has a larger sum of path
// probabilities, which is its expected number of accepted tokens. Kept nodes stay in their order. It returns
// the new index of each node of t, -1 for dropped ones, in index's memory. dst must not be t.
func (t *Tree) Sub(dst *Tree, score []float32, budget, depth int, index []int32) []int32 {
	if score == nil {
		score = dst.score[:0]
		for i, p := range t.Parent {
			s := t.LogProb[i]
			if p >= 0 {
				s = score[p] + min(s, 0)
			}
			score = append(score, s)
		}
		dst.score = score
	}
	order := dst.order[:0]
	for i := range t.Token {
		if int(t.Depth[i]) <= depth || i == 0 {
			order = append(order, int32(i))
		}
	}
	dst.order = order
	budget = max(budget, 1)
	if len(order) > budget {
		slices.SortFunc(order, func(a, b int32) int {
			if a == 0 || b == 0 {
				return cmp.Compare(a, b) // the root first, whatever log-probability it was given
			}
			return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
		})
		order = order[:budget]
		slices.Sort(order)
	}
	return t.Pick(dst, order, index)
}

// Pick makes dst the sub-tree of the given nodes of t, which are in ascending order, each after its
// parent. It returns the new index of each node of t as Sub does. dst must not be t.
func (t *Tree) Pick(dst *Tree, nodes, index []int32) []int32 {
	dst.clear()
	index = index[:0]
	for range t.Token {
		index = append(index, -1)
	}
	for _, i := range nodes {
		index[i] = dst.graft(t, int(i), index)
	}
	t.copySees(dst, nodes, index)
	return index
}

// graft adds node i of src to t, where index says under which number its parent came.
func (t *Tree) graft(src *Tree, i int, index []int32) int32 {
	p := src.Parent[i]
	if p < 0 {
		return int32(t.push(-1, src.Token[i], src.LogProb[i]))
	}
	p = index[p]
	return int32(t.attach(p, t.lastChild(p), src.Token[i], src.LogProb[i]))
}

// copySees carries visibility that was set over to the sub-tree of nodes.
func (t *Tree) copySees(dst *Tree, nodes, index []int32) {
	if t.stride == 0 {
		return
	}
	for _, i := range nodes {
		for _, j := range nodes {
			dst.SetSees(int(index[i]), int(index[j]), t.Sees(int(i), int(j)))
		}
	}
}
