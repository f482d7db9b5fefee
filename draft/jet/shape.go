// Trees from a block: one pass gives a distribution for each depth, the same below every node of that depth, and a
// shape says which combinations of their tokens become nodes.

package jet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/clues"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Shape grows trees. It keeps its memory from tree to tree; one goroutine uses it at a time.
type Shape interface {
	// Grow appends to t, which holds its root, up to budget nodes in all. levels[d−1] are the candidates of depth d, the
	// likeliest first: Score is the logarithm of a candidate's chance given its parent, which decides (of what sample.Top
	// ranks at temperature 0 it is LogProb), and LogProb is what the node gets.
	Grow(t *tree.Tree, levels [][]sample.Candidate, budget int)

	// Ranked is how many candidates of a depth Grow looks at, for trees of a budget.
	Ranked(budget int) int
}

// Names of shapes.
const (
	AccumLogP = "accum-logp" // paper 003, algorithm 1, by the log-probability of the path (equation 10)
	Entropy   = "entropy"    // algorithm 1, by the entropy of the node's depth alone (its appendix C)
	Hybrid    = "hybrid"     // algorithm 1, by the path's log-probability plus λ times that entropy
	DDTree    = "ddtree"     // the most probable prefixes, exactly
	Chain     = "chain"      // the likeliest token of each depth

	// Conditioned takes the most probable prefixes as DDTree does, but of distributions that the drafter puts right below every
	// node by what leads to it; of levels alone, all that a Shape sees, it makes DDTree's trees.
	Conditioned = "conditioned"
)

var shapeNames = []string{Conditioned, AccumLogP, DDTree, Hybrid, Entropy, Chain}

const (
	maxWidth   = 1024 // bounds the children of a node
	paperWidth = 7    // JetSpec's own
)

// NewShape returns the shape of a name. width is the number of children of a node, at most (0: of ddtree and
// conditioned without limit, of algorithm 1
// JetSpec's own; chain: not used), lambda hybrid's λ.
func NewShape(name string, width int, lambda float64) (Shape, error) {
	if !slices.Contains(shapeNames, name) {
		return nil, fmt.Errorf("tree=%q: want one of %s", name, strings.Join(shapeNames, ", "))
	}
	switch {
	case width < 0 || width > maxWidth:
		return nil, fmt.Errorf("width=%d: want 0 to %d", width, maxWidth)
	case !(lambda >= 0) || math.IsInf(lambda, 0):
		return nil, fmt.Errorf("lambda=%g: want a number, 0 or more", lambda)
	}
	switch name {
	case DDTree, Conditioned:
		return &mostProbable{clues.MostProbable{Width: width}, nil}, nil
	case Chain:
		return chain{}, nil
	}
	e := &expanding{width: width, path: 1}
	if width == 0 {
		e.width = paperWidth
	}
	switch name {
	case Entropy:
		e.path, e.lambda = 0, 1
	case Hybrid:
		e.lambda = lambda
	}
	return e, nil
}

// expanding is paper 003's algorithm 1: the open node of the highest score gets its children, width of them at once, until
// the budget is used up. So a node's unlikely children come in with the likely ones.
type expanding struct {
	width        int
	path, lambda float64 // a node's score is path·(its path's log-probability) + lambda·(its depth's entropy)

	heap    clues.Frontier
	entropy []float64 // by depth
}

func (e *expanding) Ranked(budget int) int { return min(e.width, max(budget-1, 0)) }

func (e *expanding) Grow(t *tree.Tree, levels [][]sample.Candidate, budget int) {
	e.entropy = append(e.entropy[:0], 0)
	for _, level := range levels {
		h := 0.0
		if e.lambda > 0 {
			h = entropy(level)
		}
		e.entropy = append(e.entropy, h)
	}
	e.heap.Reset()
	e.heap.Push(clues.Opening{})
	for e.heap.Len() > 0 && t.Len() < budget {
		o := e.heap.Pop()
		depth := int(t.Depth[o.Node])
		if depth == len(levels) {
			continue
		}
		level := levels[depth]
		level = level[:min(len(level), e.width)]
		for i := range level {
			c, n := &level[i], t.Len()
			if n >= budget || !clues.Possible(c) {
				break
			}
			if node := t.Append(int(o.Node), c.Token, c.LogProb); node == n {
				sum := o.Sum + c.Score
				e.heap.Push(clues.Opening{Score: e.path*sum + e.lambda*e.entropy[depth+1], Sum: sum, Node: int32(node)})
			}
		}
	}
}

// entropy of a level, in nats, all tokens that are no candidates taken as one.
func entropy(level []sample.Candidate) float64 {
	h, rest := 0.0, 1.0
	for _, c := range level {
		if p := math.Exp(float64(c.LogProb)); p > 0 {
			h -= p * float64(c.LogProb)
			rest -= p
		}
	}
	if rest > 0 {
		h -= rest * math.Log(rest)
	}
	return h
}

// mostProbable grows DDTree's tree: of all prefixes the most probable, under the product of the depths' distributions.
type mostProbable struct {
	clues.MostProbable
	levels levels
}

// levels are the same below all nodes of a depth.
type levels [][]sample.Candidate

// Below makes levels a clues.Source.
func (l *levels) Below(t *tree.Tree, node int) []sample.Candidate {
	if depth := int(t.Depth[node]); depth < len(*l) {
		return (*l)[depth]
	}
	return nil
}

func (m *mostProbable) Ranked(budget int) int {
	n := max(budget-1, 0)
	if m.Width > 0 {
		n = min(n, m.Width)
	}
	return n
}

func (m *mostProbable) Grow(t *tree.Tree, levels [][]sample.Candidate, budget int) {
	m.levels = levels
	m.MostProbable.Grow(t, &m.levels, budget)
	m.levels = nil
}

// chain is DFlash's draft.
type chain struct{}

func (chain) Ranked(int) int { return 1 }

func (chain) Grow(t *tree.Tree, levels [][]sample.Candidate, budget int) {
	node := 0
	for _, level := range levels {
		if len(level) == 0 || !clues.Possible(&level[0]) || t.Len() >= budget {
			return
		}
		node = t.Append(node, level[0].Token, level[0].LogProb)
	}
}
