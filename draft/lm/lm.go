// Package lm drafts with a model: any one that has the target's tokenizer. How its trees grow is package grow's.
package lm

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/grow"
	"github.com/grovellm/grove/internal/clues"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/shortlist"
)

// fit is what grove's own target chose of its draft model's candidates, at temperatures from 0.3 to 1.3: hotter text is less like
// what either has learned.
var fit = grow.Fit{Spread: 0.4, Warmer: 0.37, AtZero: 0.6, Lean: 1.8}

// New returns a drafter that grows trees of a shape with m, its head over a shortlist where one is named. It refuses a model whose
// vocabulary is not the target's.
func New(shape grow.Shape, lists shortlist.Options, m *model.Model, target draft.Target) (*grow.Drafter, error) {
	if err := compatible(m, target); err != nil {
		return nil, err
	}
	vocab := min(m.Config.Vocab, target.Vocab)
	method, err := draft.Shortlists(lists, shortlist.Drafter{Pool: m.Pool(), Head: &m.Head, Norm: &m.Norm, Vocab: vocab, Tokenizer: m.Tokenizer}, m, target)
	if err != nil {
		return nil, err
	}
	return grow.New(grow.Config{
		Shape: shape, Model: grow.NewDraftModel(m), Pool: m.Pool(), Vocab: vocab, Target: target.Vocab, Lists: method, Fit: fit, Clues: &clues.DraftModel,
	})
}
