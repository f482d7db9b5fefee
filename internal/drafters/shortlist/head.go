package shortlist

import (
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// Head is an output head whose tokens are listed.
type Head struct {
	*output.TokenHead
	Norm *nn.Norm // before it; may be nil
}

// NewHead makes a Head of a drafter's output head. tokens has the token of each row, from a
// vocabulary of vocab tokens; nil: row i is token i's.
func NewHead(l *nn.Linear, norm *nn.Norm, tokens []int32, vocab int) (*Head, error) {
	h, err := output.NewTokenHead(l, tokens, vocab)
	return &Head{h, norm}, err
}

// having returns those of the tokens that the head has.
func (h *Head) having(tokens []int32) (had []int32) {
	for _, token := range tokens {
		if h.Row(token) >= 0 {
			had = append(had, token)
		}
	}
	return had
}
