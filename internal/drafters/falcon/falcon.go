// Package falcon drafts with a Falcon head (Gao et al., AAAI 2025), which is semi-autoregressive:
// one pass of an LSTM and a small layer over the embeddings of tokens and the target's last hidden
// states gives the next k tokens, two in the release. Further passes begin at nodes k levels apart,
// with the head's own states in place of the target's.
//
// Trees grow like those of draft models (package grow): EAGLE-2's dynamic trees, the authors'
// static tree, or any other shape. The first of every k levels takes a pass. The levels after it
// take their candidates from the same pass, and these are the same below all nodes of a level.
//
// Rows see one another within blocks of k, and all earlier rows. In training, blocks are aligned to
// the text. The authors' code aligns them to the rows of a call, so the first of the k rows that
// predict may not see the others. Here these k rows always form a block, and the text before them
// is in blocks aligned to the text. Rows of whole blocks stay in the cache; rows that may belong to
// another block in the next proposal are computed again. The entries are a window over as much text
// as the head was made for (sequence.Text).
package falcon

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/kernels/par"
)

// New returns a drafter that grows trees of a shape with a head that fits the target. If lists is
// not nil, its output has only the rows of a shortlist; text enables the modifier +text.
func New(n *Network, shape grow.Shape, text bool, lists shortlist.Method, pool *par.Pool) (draft.Drafter, error) {
	c := grow.Config{
		Shape: shape, Model: newRows(n, pool), Target: n.Vocab, Lists: lists,
		Shared: sequence.Shared{Pool: pool, Vocab: n.Vocab},
	}
	if text {
		var err error
		if c.Weights, err = textrank.NewModelFrom(n.TextWeights); err != nil {
			return nil, err
		}
	}
	return grow.New(c)
}
