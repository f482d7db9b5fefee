// Trees from a block: one pass gives a distribution for each depth, and a shape combines their
// tokens into paths.

package onepass

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Names of shapes.
const (
	AccumLogP = "accum-logp" // JetSpec's Algorithm 1, by the log-probability of the path (equation 10)
	Entropy   = "entropy"    // Algorithm 1, by the entropy of the node's depth only (its appendix C)
	Hybrid    = "hybrid"     // Algorithm 1, by the path's log-probability plus λ times that entropy
	DDTree    = "ddtree"     // the most probable prefixes
	Chain     = "chain"      // the most probable token of each depth
)

var shapeNames = []string{AccumLogP, DDTree, Hybrid, Entropy, Chain}

const (
	maxWidth   = 1024 // limits the children of a node
	paperWidth = 7    // JetSpec's own
)

// Shape builds trees from a block's levels. It reuses its memory from tree to tree, and only one
// goroutine may use it at a time.
type Shape struct {
	Builder treebuild.Builder

	lambda  float64   // weight of a depth's entropy; 0: entropies are not needed
	entropy []float64 // by depth
	levels  [][]sample.Candidate
}

// NewShape returns the shape with a name. width limits the children of a node: 0 is no limit for
// ddtree, and JetSpec's own 7 for Algorithm 1. lambda is hybrid's λ.
func NewShape(name string, width int, lambda float64) (*Shape, error) {
	switch {
	case !slices.Contains(shapeNames, name):
		return nil, fmt.Errorf("tree=%q: want one of %s", name, strings.Join(shapeNames, ", "))
	case width < 0 || width > maxWidth:
		return nil, fmt.Errorf("width=%d: want 0 to %d", width, maxWidth)
	case !(lambda >= 0) || math.IsInf(lambda, 0):
		return nil, fmt.Errorf("lambda=%g: want a number, 0 or more", lambda)
	case name == Hybrid && lambda == 0:
		return nil, fmt.Errorf("tree=%s without lambda: want lambda=L above 0, such as 0.25; with 0 it is %s", Hybrid,
			AccumLogP)
	}
	s := &Shape{Builder: treebuild.Builder{Width: width}}
	switch name {
	case DDTree:
		return s, nil
	case Chain:
		s.Builder.Width = 1
		return s, nil
	}
	s.Builder.Whole = true
	if width == 0 {
		s.Builder.Width = paperWidth
	}
	switch name {
	case Entropy:
		s.lambda = 1
		s.Builder.Order = func(_ float64, depth int) float64 { return s.entropy[min(depth, len(s.entropy)-1)] }
	case Hybrid:
		s.lambda = lambda
		s.Builder.Order = func(path float64, depth int) float64 {
			return path + lambda*s.entropy[min(depth, len(s.entropy)-1)]
		}
	}
	return s, nil
}

// NewStatic returns the shape of a static tree with a template; see treebuild.Builder.
func NewStatic(template []int32) *Shape {
	s, children := &Shape{}, make([]int, len(template)+1)
	s.Builder.Template = template
	for _, parent := range template {
		children[parent]++
		s.Builder.Width = max(s.Builder.Width, children[parent])
	}
	return s
}

// Ranked returns how many candidates of a depth Build considers for trees with a budget.
func (s *Shape) Ranked(budget int) int {
	n := max(budget-1, 0)
	if s.Builder.Width > 0 {
		n = min(n, s.Builder.Width)
	}
	return n
}

// Build appends to t, which holds its root, up to budget nodes in all. levels[d−1] are the
// candidates of depth d, the most probable first. The guide, which may be nil, corrects their
// probabilities.
func (s *Shape) Build(t *tree.Tree, levels [][]sample.Candidate, budget int, guide draft.Guide) {
	s.setLevels(levels)
	s.levels, s.Builder.Guide = levels, guide
	s.Builder.Build(t, (*ofLevels)(s), budget)
	s.levels, s.Builder.Guide = nil, nil
}

// BuildFrom is Build with candidates that a source gives below every node. The shape must not use entropies.
func (s *Shape) BuildFrom(t *tree.Tree, from treebuild.Source, budget int, guide draft.Guide) {
	s.Builder.Guide = guide
	s.Builder.Build(t, from, budget)
	s.Builder.Guide = nil
}

// setLevels computes the entropies of the depths, if the shape uses them.
func (s *Shape) setLevels(levels [][]sample.Candidate) {
	s.entropy = append(s.entropy[:0], 0)
	for i := 0; s.lambda > 0 && i < len(levels); i++ {
		s.entropy = append(s.entropy, entropy(levels[i]))
	}
}

// ofLevels is a shape as its own treebuild.Source: levels are the same below all nodes of a depth.
type ofLevels Shape

func (s *ofLevels) Below(t *tree.Tree, node int) []sample.Candidate {
	if depth := int(t.Depth[node]); depth < len(s.levels) {
		return s.levels[depth]
	}
	return nil
}

// entropy returns a lower bound of a level's entropy, in nats: it assumes as few other tokens as
// possible, none likelier than the last candidate. The bound is tight for a flat level, and for one
// whose candidates have nearly all probability.
func entropy(level []sample.Candidate) float64 {
	h := 0.0
	rest := 1.0
	least := 1.0
	for _, c := range level {
		if p := math.Exp(float64(c.LogProb)); p > 0 {
			h -= p * float64(c.LogProb)
			rest -= p
			least = min(least, p)
		}
	}
	if rest > 0 {
		h -= rest * math.Log(min(rest, least))
	}
	return h
}
