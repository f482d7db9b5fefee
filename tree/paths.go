// Paths of a tree, from the root to a node.

package tree

import "slices"

// Path appends the nodes from the root to i, both included.
func (t *Tree) Path(i int, dst []int32) []int32 {
	start := len(dst)
	for ; i >= 0; i = int(t.Parent[i]) {
		dst = append(dst, int32(i))
	}
	slices.Reverse(dst[start:])
	return dst
}
