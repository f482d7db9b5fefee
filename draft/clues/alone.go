// Trees of the text alone, which cost no pass of a head.

package clues

import (
	"math"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// leastAlone is the least chance of a path whose node is proposed: most of what the text holds is never worth a row, and finding it
// would be most of the time.
const leastAlone = 0.05

// silent is a head that says nothing.
type silent struct{}

func (silent) Row(*tree.Tree, int) (Row, bool) { return Row{}, false }

// Alone grows the tree of a request of which no head says anything: what the text and the target's asides foretell.
func (g *Grower) Alone(r *draft.Request, text *Text, width int) {
	if r.Depth < 1 {
		return
	}
	g.text, g.rows, g.deepest, g.guide = text, silent{}, r.Depth, r.Guide
	g.at, g.sums = g.at[:0], g.sums[:0]
	g.best.Width = width
	g.best.Grow(r.Tree, (*alone)(g), r.Budget)
	g.text, g.rows, g.guide = nil, nil, nil
}

// alone is the grower as a Source that ends where paths become unlikely.
type alone Grower

// Below makes the candidates of the node that was added last.
func (a *alone) Below(t *tree.Tree, node int) []sample.Candidate {
	sum := 0.0
	if parent := t.Parent[node]; parent >= 0 {
		sum = a.sums[parent] + score(a.lists[parent], t.Token[node])
	}
	a.sums = append(a.sums, sum)
	list := (*Grower)(a).Below(t, node)
	for i := range list {
		if sum+list[i].Score < math.Log(leastAlone) {
			return list[:i]
		}
	}
	return list
}

// score is that of a token in a list.
func score(list []sample.Candidate, token int32) float64 {
	for i := range list {
		if list[i].Token == token {
			return list[i].Score
		}
	}
	return math.Inf(-1)
}
