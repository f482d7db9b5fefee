package headfile

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
)

// Timed is a head of random weights, drafting as its paper has it, to time what a draft costs. There is no target.
type Timed struct {
	Output shortlist.Drafter // its output matrix, norm and embedding
	Layers int               // bytes of its layers' weights

	// A draft with all of its candidates: nodes and depth to ask for, and nodes that it has at least.
	Budget, Depth, Least int

	// New returns a drafter over the tokens of a shortlist; nil: over all.
	New func(lists shortlist.Method) (draft.Drafter, error)
}
