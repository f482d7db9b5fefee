// Conditioned trees: what the head says of a depth, put right at every node by the path to it (package clues).

package jet

import (
	"github.com/grovellm/grove/internal/clues"
	"github.com/grovellm/grove/tree"
)

// grown is the state as the head's part in a conditioned tree.
type grown state

// Row is that of the node's depth, which belongs to the head's first guesses.
func (s *grown) Row(t *tree.Tree, node int) (row clues.Row, strays bool) {
	depth := int(t.Depth[node])
	if parent := t.Parent[node]; parent >= 0 {
		strays = s.strays[parent]
		if depth <= s.depth && len(s.levels[depth-1]) > 0 {
			strays = strays || s.levels[depth-1][0].Token != t.Token[node]
		}
	}
	s.strays = append(s.strays[:node], strays)
	if depth < s.depth {
		row = clues.Row{Level: s.levels[depth], At: depth + 1, Head: (*state)(s), Number: depth + 1}
	}
	return row, strays
}
