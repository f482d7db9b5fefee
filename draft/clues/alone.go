// Trees of the text alone, which cost no pass of a head.

package clues

import (
	"github.com/grovellm/grove/draft"
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
	g.grow(r.Tree, text, silent{}, r.Budget, r.Depth, width, r.Guide, leastAlone)
}
