package headfile

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
)

// Timed is a head of random weights that drafts as in its paper, to time what a draft costs. There is no target.
type Timed struct {
	Output shortlist.Drafter // its output matrix, norm and embedding
	Layers int               // bytes of its layers' weights

	// A draft with all of its candidates: the nodes and depth to ask for, and the least number of nodes that it has.
	Budget, Depth, Least int

	// New returns a drafter over the tokens of a shortlist, or over all if it is nil.
	New func(lists shortlist.Method) (draft.Drafter, error)
}
