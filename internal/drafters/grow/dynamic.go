package grow

import (
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/tree"
)

// Dynamic is EAGLE-2's dynamic draft tree (arXiv 2406.16858, section 4). Each pass expands the K
// likeliest nodes of the last level, by the probability of their whole paths, into K children each.
// The likeliest N−1 of all these candidates form the tree. A node is never likelier than its parent,
// so they are connected. Nodes that can no longer be among them are not computed: the tree is the same.
type Dynamic struct {
	K     int    `draft:"k" help:"nodes expanded in one pass, and children of a node (1 to 64)"`
	Depth int    `draft:"depth" help:"maximum passes after the first, which expands the root (0 to 4094)"`
	N     int    `draft:"n" help:"maximum nodes, root included (2 to 4096)"`
	Model string `draft:"model" help:"GGUF file or Hugging Face folder to draft with; empty: what the model was opened with"`
}

// DefaultDynamic returns the options of EAGLE-2's and EAGLE-3's runs.
func DefaultDynamic() Dynamic { return Dynamic{K: 10, Depth: 7, N: 60} }

func (o *Dynamic) limits() (limits, error) { return limits{o.N, o.Depth + 1, o.K}, option.Check(o) }

// begin makes a pool, except for a drawn tree, which keeps every node that it draws.
func (o *Dynamic) begin(s *state) { s.pooled = !s.drawing }

func (o *Dynamic) choose(s *state) {
	floor, width := float32(0), o.K
	switch {
	case !s.pooled:
		width = min(width, s.room())
	case s.best.full():
		floor = s.best.least()
	}
	for node := s.fresh; node < s.tree.Len(); node++ {
		if s.worth[node] > floor && s.open(node) {
			s.expand = insert(s.expand, int32(node), s.worth, width)
		}
	}
}

// breadth is K for a pool, as in the paper. K drawn children of every node would be nearly the whole tree.
func (o *Dynamic) breadth(s *state, _ int32, confidence float32) int {
	if s.pooled {
		return o.K
	}
	return treebuild.DrawnBreadth(o.K, confidence)
}

func (o *Dynamic) floor() float32                    { return negInf }
func (o *Dynamic) learn(*state, *tree.Tree, []int32) {}
