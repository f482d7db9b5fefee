// Package walk follows a string of tokens down a tree.
package walk

import (
	"slices"

	"github.com/grovellm/grove/tree"
)

// Walk follows a string of tokens down a tree. If siblings carry the same token, as in a spliced
// tree, it follows all of them, so it ends on the longest matching path of the whole tree
// (Merged-Tree Dual Drafting §6.1: the candidate with the largest a).
type Walk struct {
	t        *tree.Tree
	at, then []int32 // the nodes that spell the tokens followed so far, ascending
	children []int32 // scratch
}

// Start puts the walk at the root of t.
func (w *Walk) Start(t *tree.Tree) { w.t, w.at = t, append(w.at[:0], 0) }

// Node returns the node where the walk stands: the first one if several spell the same tokens.
func (w *Walk) Node() int { return int(w.at[0]) }

// Nodes returns all nodes that spell the tokens followed so far, ascending. They change with the next Follow.
func (w *Walk) Nodes() []int32 { return w.at }

// Follow moves to the child that carries token. If there is none it stays and returns false.
func (w *Walk) Follow(token int32) bool {
	w.then = w.then[:0]
	for _, i := range w.at {
		w.children = w.t.Children(int(i), w.children[:0])
		for _, c := range w.children {
			if w.t.Token[c] == token {
				w.then = append(w.then, c)
			}
		}
	}
	if len(w.then) == 0 {
		return false
	}
	slices.Sort(w.then)
	w.at, w.then = w.then, w.at
	return true
}
