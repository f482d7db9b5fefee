package shortlist

import (
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// Head is an output head that lists are taken of.
type Head struct {
	*output.TokenHead
	Norm *nn.Norm // before it; may be nil
}

// NewHead makes one of a drafter's head. tokens are those of each row, of a vocabulary of so many;
// nil: row i is token i's.
func NewHead(l *nn.Linear, norm *nn.Norm, tokens []int32, vocab int) (*Head, error) {
	h, err := output.NewTokenHead(l, tokens, vocab)
	return &Head{h, norm}, err
}

// having is those of tokens that the head has.
func (h *Head) having(tokens []int32) (had []int32) {
	for _, token := range tokens {
		if h.Row(token) >= 0 {
			had = append(had, token)
		}
	}
	return had
}
