// Two trees under one root (Merged-Tree Dual Drafting, sections 3 and 4.1).

package tree

import "fmt"

// Splice makes dst the union of a and b: one shared root, a's nodes at their own indices, b's after
// them, no link between the two. It returns φ, the index in dst of each node of b:
// φ(0) = 0, φ(i) = n₁ + i, where n₁ is the number of a's nodes below the root. phi's memory is used for it.
//
// The same candidate may come from both; it then has a node in each half, as the paper has it.
// Both trees must have the same root token; dst must be neither of them.
func Splice(dst, a, b *Tree, phi []int32) ([]int32, error) {
	switch {
	case dst == a || dst == b:
		return nil, fmt.Errorf("tree: Splice cannot write into one of the trees it reads: give it a third")
	case a.Len() == 0 || b.Len() == 0:
		return nil, fmt.Errorf("tree: Splice of trees of %d and %d nodes: each needs a root", a.Len(), b.Len())
	case a.Token[0] != b.Token[0]:
		return nil, fmt.Errorf("tree: Splice of trees with roots %d and %d: both must start at the last committed token", a.Token[0], b.Token[0])
	}
	dst.Copy(a)
	phi = append(phi[:0], 0)
	last := dst.lastChild(0)
	for i := 1; i < b.Len(); i++ {
		// π∪(j) = φ(π₂(j − n₁)). Children of one node are linked in the order they come, so the
		// last sibling is the root's youngest child, or is found on b's side.
		parent := phi[b.Parent[i]]
		if parent != 0 {
			phi = append(phi, int32(dst.attach(parent, dst.lastChild(parent), b.Token[i], b.LogProb[i])))
			continue
		}
		last = int32(dst.attach(0, last, b.Token[i], b.LogProb[i]))
		phi = append(phi, last)
	}
	if b.stride > 0 { // carry visibility that was set: M₂ in its block, the root's row with the root
		for i := range b.Token {
			for j := range b.Token {
				if i != j {
					dst.SetSees(int(phi[i]), int(phi[j]), b.Sees(i, j) || i == 0 && j == 0)
				}
			}
		}
	}
	return phi, nil
}
