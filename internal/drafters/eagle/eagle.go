// Package eagle drafts with an EAGLE head: one small layer over the embedding of each token and a
// feature that the target's own hidden states at the place before give; EAGLE-3 fuses several taps,
// EAGLE-1 and EAGLE-2 take the last. On its own drafts it continues with its own states for
// features. Trees grow as those of draft models do (package grow): EAGLE-2's dynamic tree or any
// other shape.
//
// eagle3 and eagle2 grow EAGLE-2's tree with the parameters of the papers' runs: 10 nodes expanded
// in a pass, 8 passes, 60 nodes. One deviation remains: above temperature 0 candidates are drawn
// with the noise of the target's own choice instead of being the most probable (package grow); the
// acceptance rule rejection draws with noise of its own.
//
// The drafter keeps, for each sequence, keys and values of the committed text's entries, each made
// of the target's taps. Rows of drafted tokens last for one proposal: what they were made of was
// the head's own guess. The entries are a window over as much text as the head was made for
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

// New returns a drafter that grows trees of a shape with a head that fits the target; the rows of
// its output are those of a shortlist where lists is not nil; text is the modifier +text.
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
		return d.Drafter, nil // without what makes it learn
	}
	return d, nil
}
