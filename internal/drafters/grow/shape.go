package grow

import (
	"cmp"
	"math"
	"slices"

	"github.com/grovellm/grove/tree"
)

// Shape is how trees grow: *Linear, *Fixed, *DynaTree, *Dynamic or *BestFirst.
type Shape interface {
	// limits returns the shape's own limits, whatever a request allows. An option out of range is an error.
	limits() (limits, error)

	// begin prepares a new sequence's state.
	begin(s *state)

	// choose appends to s.expand the nodes to expand next; none ends the tree. At the first step
	// the root is the only node.
	choose(s *state)

	// breadth returns how many children node gets. confidence is the drafter's in its first candidate.
	breadth(s *state, node int32, confidence float32) int

	// floor returns the least log-probability of the path to a proposed node. Nodes below it are
	// dropped from the finished tree.
	floor() float32

	// learn receives the nodes of the verified tree that became text, the root first.
	learn(s *state, verified *tree.Tree, nodes []int32)
}

// limits of a tree.
type limits struct {
	nodes    int // root included
	depth    int
	children int // of one node
}

// maxNodes limits every tree, and so the rows that a row sees. maxBreadth limits the children of a node.
const (
	maxNodes   = 4096
	maxBreadth = 64
)

var negInf = float32(math.Inf(-1))

func logOf(p float32) float32 { return float32(math.Log(float64(p))) }

func always(*state, int) bool { return true }

// level lists the expandable nodes of the last level, as many as there is room for if each gets at
// least so many children. The likeliest come first, so that they get the remaining room. Nodes of
// drawn trees come in the order drawn, so that the order does not depend on what was drawn.
func (s *state) level(expandable func(s *state, node int) bool, each int) {
	for node := s.fresh; node < s.tree.Len(); node++ {
		if s.open(node) && expandable(s, node) {
			s.expand = append(s.expand, int32(node))
		}
	}
	if !s.drawing {
		slices.SortStableFunc(s.expand, func(a, b int32) int { return cmp.Compare(s.path[b], s.path[a]) })
	}
	if s.scarce {
		each = 1
	}
	if n := (s.room() + each - 1) / each; len(s.expand) > n {
		s.expand = s.expand[:max(n, 0)]
	}
}

// insert inserts a node into the ordered list of the width most worthy nodes; of equal ones the first
// are kept.
func insert(chosen []int32, node int32, worth []float32, width int) []int32 {
	n := len(chosen)
	if n == width {
		if n == 0 || worth[node] <= worth[chosen[n-1]] {
			return chosen
		}
		n--
	} else {
		chosen = append(chosen, node)
	}
	for ; n > 0 && worth[node] > worth[chosen[n-1]]; n-- {
		chosen[n] = chosen[n-1]
	}
	chosen[n] = node
	return chosen
}
