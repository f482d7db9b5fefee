package grow

import (
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/tree"
)

// BestFirst drafts the nodes with the largest probability from the root. Each step expands the
// Width most probable nodes that are not expanded yet, until none of them can have a child that
// belongs to the tree, or the loop's guide finds that another pass does not pay.
//
// With the modifier +text each step rebuilds the tree from everything known by then, and extends it
// beyond the rows by the text.
type BestFirst struct {
	Width  int    `draft:"width" help:"maximum nodes expanded in one pass (1 to 4096)"`
	Branch int    `draft:"branch" help:"maximum children of a node (1 to 64)"`
	Depth  int    `draft:"depth" help:"maximum passes, and without +text maximum depth (1 to 4095)"`
	Model  string `draft:"model" help:"GGUF file or Hugging Face folder to draft with; empty: what the model was opened with"`
}

// DefaultBestFirst returns the options that did well on grove's own models.
func DefaultBestFirst() BestFirst { return BestFirst{Width: 8, Branch: 8, Depth: 20} }

func (o *BestFirst) limits() (limits, error) {
	return limits{maxNodes, o.Depth, o.Branch}, option.Check(o)
}

// begin makes a pool, except for a drawn tree, which keeps every node that it draws.
func (o *BestFirst) begin(s *state) {
	if s.Text != nil {
		s.rebuilt = &rebuilt{width: o.Branch}
	}
	s.pooled = !s.drawing && s.rebuilt == nil
}

func (o *BestFirst) choose(s *state) {
	if s.rebuilt != nil {
		s.rebuilt.choose(s, o.Width, o.Depth)
		return
	}
	floor, width := float32(0), o.Width
	switch {
	case !s.pooled: // drawn nodes keep their places: expand the likeliest first, and those of at least half their worth
		width = min(width, s.room())
		for node := range s.tree.Token {
			if s.open(node) {
				floor = max(floor, s.worth[node]/2)
			}
		}
	case s.best.full():
		floor = s.best.least()
	}
	for node := range s.tree.Token {
		// A child is worth no more than its parent.
		if w := s.worth[node]; w > floor && s.open(node) && int(s.tree.Depth[node]) < o.Depth {
			s.expand = insert(s.expand, int32(node), s.worth, width)
		}
	}
}

// breadth is Branch for a pool, which keeps the best nodes.
func (o *BestFirst) breadth(s *state, _ int32, confidence float32) int {
	if s.pooled {
		return o.Branch
	}
	return treebuild.DrawnBreadth(o.Branch, confidence)
}

func (o *BestFirst) floor() float32                    { return negInf }
func (o *BestFirst) learn(*state, *tree.Tree, []int32) {}
