// Package lm drafts with any model that has the target's tokenizer. Package grow grows its
// trees.
package lm

import (
	"fmt"

	"github.com/grovellm/grove/draft"
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

func init() {
	for _, k := range grow.Kinds {
		f := registry.Family{
			Name: k.Name, Help: "a draft model: " + k.Help, About: k.About, Paper: k.Paper, Needs: "a draft model",
			Options:   k.Options,
			Modifiers: registry.NetworkModifiers, New: family(k.Parse),
		}
		if k.Name == "best-first" {
			f.Auto, f.Rank = "best-first+text", 6
		}
		if k.Name == "dynatree" {
			f.PaperOptions = "b-root=1"
		}
		registry.Register(f)
	}
}

// family returns a function that makes drafters from texts.
func family(parse func(text string) (grow.Parsed, error)) func(string, registry.Modifiers,
	registry.Target) (draft.Drafter,
	error) {
	return func(text string, mods registry.Modifiers, target registry.Target) (draft.Drafter, error) {
		p, err := parse(text)
		if err != nil {
			return nil, err
		}
		m := target.Draft
		switch {
		case p.Model != "" && target.Open == nil:
			return nil, fmt.Errorf("model=%s: no model can be opened here", p.Model)
		case p.Model != "":
			if m, err = target.Open(p.Model); err != nil {
				return nil, err
			}
		case m == nil:
			return nil, fmt.Errorf("there is no draft model: name one with model=FILE, or open the model with one")
		}
		return New(p.Shape, mods, m, target)
	}
}
