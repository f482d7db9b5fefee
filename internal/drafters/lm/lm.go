// Package lm drafts with any model that has the target's tokenizer. Package grow grows its
// trees.
package lm

import (
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/model"
)

// New returns a drafter that grows trees of a shape with m. It refuses a model whose vocabulary
// differs from the target's.
func New(shape grow.Shape, mods registry.Modifiers, m *model.Model, target registry.Target) (*grow.Drafter, error) {
	if err := Compatible(m, target); err != nil {
		return nil, err
	}
	vocab := min(m.Config.Vocab, target.Vocab)
	method, err := registry.Shortlists(mods.List, shortlist.Drafter{Pool: m.Pool(), Head: &m.Head, Norm: &m.Norm,
		Vocab: vocab, Tokenizer: m.Tokenizer}, m, target)
	if err != nil {
		return nil, err
	}
	c := grow.Config{Shape: shape, Model: grow.NewDraftModel(m), Target: target.Vocab, Lists: method,
		Shared: sequence.Shared{Pool: m.Pool(), Vocab: vocab}}
	if mods.Text {
		c.Weights = textrank.NewModel()
	}
	return grow.New(c)
}
