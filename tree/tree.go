// Package tree holds the unit of work of a pass: a tree of token rows under the last committed
// token. The tree mask, the position ids and the retrieval matrix of the papers are methods of Tree
// (Merged-Tree Dual Drafting, sections 3 and 4).
//
// A Tree keeps its buffers through Reset, so a loop that builds one tree per round stops allocating
// once it has seen its largest tree.
package tree

import (
	"fmt"
	"math"
	"slices"
)

// Tree is a rooted tree of tokens. Node 0 is the root, and parents come before their children.
// Token, Parent, Depth and LogProb are parallel slices, one entry a node; they are for reading, and
// Append builds them (a calibration may change LogProb afterwards).
type Tree struct {
	Token   []int32   // the token of each node
	Parent  []int32   // the parent's index; -1 at the root
	Depth   []int32   // 0 at the root, one more than the parent elsewhere
	LogProb []float32 // the drafter's log-probability of the node given its parent; at most 0

	first, next []int32 // first child and next sibling, -1 for none: children in the order they came

	sees   []uint64 // visibility rows of stride words each; empty while every node sees its ancestors alone
	stride int

	order []int32   // scratch of Sub
	score []float32 // scratch of Sub
}

// New returns a tree with only a root.
func New(root int32) *Tree {
	t := new(Tree)
	t.Reset(root)
	return t
}

// Chain returns the tree without branches whose nodes are tokens in order. It is the shape of a
// prompt's chunk. Without tokens, the tree has length 0, and nothing can be appended to it.
func Chain(tokens []int32) *Tree {
	t := new(Tree)
	t.ResetChain(tokens)
	return t
}

// Reset empties t and gives it a new root, keeping its buffers.
func (t *Tree) Reset(root int32) {
	t.clear()
	t.push(-1, root, 0)
}

// ResetChain makes t the chain of tokens, keeping its buffers.
func (t *Tree) ResetChain(tokens []int32) {
	t.clear()
	for i, tok := range tokens {
		t.push(int32(i)-1, tok, 0)
		if i > 0 {
			t.first[i-1] = int32(i)
		}
	}
}

func (t *Tree) clear() {
	t.Token = t.Token[:0]
	t.Parent = t.Parent[:0]
	t.Depth = t.Depth[:0]
	t.LogProb = t.LogProb[:0]
	t.first, t.next = t.first[:0], t.next[:0]
	t.sees, t.stride = t.sees[:0], 0
}

// Len is the number of nodes, root included.
func (t *Tree) Len() int { return len(t.Token) }

// Append adds a child of parent and returns its index. Two children of one node with the same token
// would be the same candidate, so when parent already has such a child that one is returned, and it
// keeps the larger log-probability of the two. A log-probability above 0 counts as 0, NaN as minus infinity.
func (t *Tree) Append(parent int, token int32, logProb float32) int {
	logProb = min(logProb, 0)
	if logProb != logProb {
		logProb = float32(math.Inf(-1))
	}
	last := int32(-1)
	for c := t.first[parent]; c >= 0; c = t.next[c] {
		if t.Token[c] == token {
			t.LogProb[c] = max(t.LogProb[c], logProb)
			return int(c)
		}
		last = c
	}
	return t.attach(int32(parent), last, token, logProb)
}

// AppendApart adds a child of parent even if parent already has one with that token, and returns its index. It is for
// branches that must not share rows, such as the blocks of a text that a head learns from.
func (t *Tree) AppendApart(parent int, token int32) int {
	return t.attach(int32(parent), t.lastChild(int32(parent)), token, 0)
}

// attach adds a node after the sibling last (-1: as the first child).
func (t *Tree) attach(parent, last, token int32, logProb float32) int {
	i := t.push(parent, token, logProb)
	if last < 0 {
		t.first[parent] = int32(i)
	} else {
		t.next[last] = int32(i)
	}
	return i
}

// push adds a node without linking it to its parent's list of children.
func (t *Tree) push(parent, token int32, logProb float32) int {
	i, depth := len(t.Token), int32(0)
	if parent >= 0 {
		depth = t.Depth[parent] + 1
	}
	t.Token = append(t.Token, token)
	t.Parent = append(t.Parent, parent)
	t.Depth = append(t.Depth, depth)
	t.LogProb = append(t.LogProb, logProb)
	t.first = append(t.first, -1)
	t.next = append(t.next, -1)
	if t.stride > 0 {
		t.growSees()
	}
	return i
}

// lastChild is the youngest child of i, -1 for none.
func (t *Tree) lastChild(i int32) int32 {
	last := int32(-1)
	for c := t.first[i]; c >= 0; c = t.next[c] {
		last = c
	}
	return last
}

// Child is the first child of i with the token; -1 if there is none.
func (t *Tree) Child(i int, token int32) int {
	for c := t.first[i]; c >= 0; c = t.next[c] {
		if t.Token[c] == token {
			return int(c)
		}
	}
	return -1
}

// Children appends the children of i to dst, in the order they were added.
func (t *Tree) Children(i int, dst []int32) []int32 {
	for c := t.first[i]; c >= 0; c = t.next[c] {
		dst = append(dst, c)
	}
	return dst
}

// PathLogProb is the log-probability of the whole path from the root to i.
func (t *Tree) PathLogProb(i int) float32 {
	var s float32
	for ; i >= 0; i = int(t.Parent[i]) {
		s += t.LogProb[i]
	}
	return s
}

// MaxDepth is the depth of the deepest node; -1 for an empty tree.
func (t *Tree) MaxDepth() int {
	d := int32(-1)
	for _, v := range t.Depth {
		d = max(d, v)
	}
	return int(d)
}

// Copy makes t equal to src, keeping t's buffers.
func (t *Tree) Copy(src *Tree) {
	if t == src {
		return
	}
	t.Token = append(t.Token[:0], src.Token...)
	t.Parent = append(t.Parent[:0], src.Parent...)
	t.Depth = append(t.Depth[:0], src.Depth...)
	t.LogProb = append(t.LogProb[:0], src.LogProb...)
	t.first = append(t.first[:0], src.first...)
	t.next = append(t.next[:0], src.next...)
	t.sees = append(t.sees[:0], src.sees...)
	t.stride = src.stride
}

// Check verifies what a pass relies on, for a tree that came from elsewhere: one root, parents before
// children, depths that follow, nodes that see only their ancestors, and every token in [0, vocab).
func (t *Tree) Check(vocab int) error {
	n := len(t.Token)
	if n == 0 {
		return fmt.Errorf("tree: there are no nodes: want at least a root")
	}
	if len(t.Parent) != n || len(t.Depth) != n || len(t.LogProb) != n || len(t.first) != n || len(t.next) != n {
		return fmt.Errorf("tree: Token, Parent, Depth, LogProb hold %d, %d, %d, %d entries: build it with New and Append",
			n, len(t.Parent), len(t.Depth), len(t.LogProb))
	}
	if t.stride > 0 {
		return fmt.Errorf("tree: SetSees changed what its nodes see: leave it out, since in a pass nodes see their ancestors")
	}
	for i, p := range t.Parent {
		switch {
		case i == 0 && (p != -1 || t.Depth[0] != 0):
			return fmt.Errorf("tree: the root has parent %d and depth %d: want -1 and 0", p, t.Depth[0])
		case i > 0 && (p < 0 || int(p) >= i):
			return fmt.Errorf("tree: node %d has parent %d: want one of the nodes before it", i, p)
		case i > 0 && t.Depth[i] != t.Depth[p]+1:
			return fmt.Errorf("tree: node %d has depth %d under a parent of depth %d: want %d", i, t.Depth[i],
				t.Depth[p], t.Depth[p]+1)
		case t.Token[i] < 0 || int(t.Token[i]) >= vocab:
			return fmt.Errorf("tree: node %d carries token %d: want 0 to %d", i, t.Token[i], vocab-1)
		}
	}
	return nil
}

// Path appends the nodes from the root to i, both included.
func (t *Tree) Path(i int, dst []int32) []int32 {
	start := len(dst)
	for ; i >= 0; i = int(t.Parent[i]) {
		dst = append(dst, int32(i))
	}
	slices.Reverse(dst[start:])
	return dst
}
