// The part of a tree that a budget pays for.

package tree

import (
	"cmp"
	"slices"
)

// Sub makes dst the best connected sub-tree of t with at most budget nodes (root included, which
// always stays) and no node deeper than depth: the nodes with the largest path log-probability, ties to
// the lower index. A path is never likelier than its beginning, so those nodes form a tree, and no other
// tree of that size has a larger sum of path probabilities, which is the number of tokens it is expected
// to get accepted. Kept nodes stay in their order. It returns the new index of each node of t, -1 where it was
// dropped, in index's memory. dst must not be t.
func (t *Tree) Sub(dst *Tree, budget, depth int, index []int32) []int32 {
	dst.clear()
	index = index[:0]
	if t.Len() == 0 {
		return index
	}
	order, score := dst.order[:0], dst.score[:0]
	for i, p := range t.Parent {
		s := t.LogProb[i]
		if p >= 0 {
			s = score[p] + min(s, 0)
		}
		score = append(score, s)
		index = append(index, -1)
		if int(t.Depth[i]) <= depth || i == 0 {
			order = append(order, int32(i))
		}
	}
	dst.order, dst.score = order, score
	if budget = max(budget, 1); len(order) > budget {
		slices.SortFunc(order, func(a, b int32) int {
			if a == 0 || b == 0 {
				return cmp.Compare(a, b) // the root first, whatever log-probability it was given
			}
			return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
		})
		order = order[:budget]
		slices.Sort(order)
	}
	for _, i := range order {
		p := t.Parent[i]
		if p < 0 {
			index[i] = int32(dst.push(-1, t.Token[i], t.LogProb[i]))
			continue
		}
		p = index[p]
		index[i] = int32(dst.attach(p, dst.lastChild(p), t.Token[i], t.LogProb[i]))
	}
	if t.stride > 0 {
		for _, i := range order {
			for _, j := range order {
				dst.SetSees(int(index[i]), int(index[j]), t.Sees(int(i), int(j)))
			}
		}
	}
	return index
}
