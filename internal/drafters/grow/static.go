package grow

import (
	"fmt"

	"github.com/grovellm/grove/tree"
)

// Static drafts a tree of fixed paths. Children[d] has the number of children of each node at depth
// d, in order; children are the most probable candidates. Nodes missing at the end of a list have no
// children.
type Static struct{ Children [][]int }

func (o *Static) limits() (limits, error) {
	l, nodes := limits{nodes: 1, depth: len(o.Children)}, 1
	for d, level := range o.Children {
		if len(level) > nodes {
			return limits{}, fmt.Errorf("a static tree has numbers of children for %d nodes at depth %d: it has %d",
				len(level), d, nodes)
		}
		nodes = 0
		for _, n := range level {
			if n < 0 || n > maxBreadth {
				return limits{}, fmt.Errorf("a node of a static tree has %d children: want 0 to %d", n, maxBreadth)
			}
			nodes += n
			l.children = max(l.children, n)
		}
		l.nodes += nodes
	}
	if l.nodes < 2 || l.nodes > maxNodes {
		return limits{}, fmt.Errorf("a static tree has %d nodes: want 2 to %d", l.nodes, maxNodes)
	}
	return l, nil
}

func (o *Static) begin(*state) {}

func (o *Static) choose(s *state) {
	for node := s.fresh; node < s.tree.Len(); node++ {
		if s.open(node) && o.children(&s.tree, node) > 0 && s.room() > 0 {
			s.expand = append(s.expand, int32(node))
		}
	}
}

func (o *Static) breadth(s *state, node int32, _ float32) int { return o.children(&s.tree, int(node)) }
func (o *Static) floor() float32                              { return negInf }
func (o *Static) learn(*state, *tree.Tree, []int32)           {}

// children returns how many children a node has.
func (o *Static) children(t *tree.Tree, node int) int {
	depth, place := int(t.Depth[node]), o.place(t, node)
	if depth >= len(o.Children) || place >= len(o.Children[depth]) {
		return 0
	}
	return o.Children[depth][place]
}

// place returns a node's number among the nodes of its depth in the whole tree.
func (o *Static) place(t *tree.Tree, node int) int {
	parent := int(t.Parent[node])
	if parent < 0 {
		return 0
	}
	n, level := 0, o.Children[t.Depth[parent]]
	for _, children := range level[:min(o.place(t, parent), len(level))] {
		n += children
	}
	for i := parent + 1; i < node; i++ { // older siblings
		if int(t.Parent[i]) == parent {
			n++
		}
	}
	return n
}
