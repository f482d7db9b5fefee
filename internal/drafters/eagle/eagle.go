// Package eagle drafts with an EAGLE head: one small layer over the embedding of each token and a
// feature from the target's own hidden states at the place before. EAGLE-3 fuses several taps;
// EAGLE-1 and EAGLE-2 use the last. On its own drafts the head continues with its own states as
// features. Trees grow as those of draft models do (package grow): EAGLE-2's dynamic tree or any
// other shape.
//
// eagle3 and eagle2 grow EAGLE-2's tree with the parameters of the papers' runs: 10 nodes expanded
// per pass, 8 passes, 60 nodes. One deviation remains: above temperature 0 candidates are drawn
// with the noise of the target's own choice instead of being the most probable (package grow). The
// acceptance rule rejection draws with independent noise.
//
// For each sequence the drafter keeps keys and values of the committed text's entries, each made
// from the target's taps. Rows of drafted tokens last for one proposal, since they were made from
// the head's own guesses. The entries are a window over as much text as the head was made for
// (sequence.Text).
package eagle

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/kernels/par"
)

// drafter is package grow's over rows of a head.
type drafter struct {
	*grow.Drafter
	rows *rows
}

// New returns a drafter that grows trees of a shape with a head that fits the target. If lists is not
// nil the head computes only the logits of shortlists. text is the modifier +text.
func New(n *Network, shape grow.Shape, text bool, lists shortlist.Method, pool *par.Pool) (draft.Drafter, error) {
	d := &drafter{rows: newRows(n, pool)}
	c := grow.Config{Shape: shape, Model: d.rows, Target: n.Vocab, Tokens: n.Tokens, Lists: lists,
		Shared: sequence.Shared{Pool: pool, Vocab: n.Vocab}}
	var err error
	if text {
		if c.Weights, err = textrank.NewModelFrom(n.TextWeights); err != nil {
			return nil, err
		}
	}
	if d.Drafter, err = grow.New(c); err != nil {
		return nil, err
	}
	if n.alike() {
		return d.Drafter, nil // such a head does not learn
	}
	return d, nil
}
