package assistant

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/par"
)

func init() {
	registry.Register(registry.Family{
		Name: arch, Help: "an assistant of Gemma 4: dynamic trees",
		About: `A few layers read the keys and values of the target's own layers, so they neither read nor keep text. They draft
from the target's last hidden state, and then from their own states. Trees are EAGLE-2's dynamic trees; tree= chooses
others; linear makes the chains of other engines.`,
		Paper: "Gemma 4 (Google, 2026)",
		Needs: "a Gemma 4 model and its assistant", Options: new(grow.DefaultHeadOptions()),
		Modifiers: registry.NetworkModifiers, Auto: arch + ":tree=best-first+text", Rank: 4, PaperOptions: "tree=linear",
		New: func(text string, mods registry.Modifiers, of registry.Target) (draft.Drafter, error) {
			p, err := grow.ParseHead(text)
			if err != nil {
				return nil, err
			}
			n, err := headfile.Choose(p.Model, of, &kind, kind.Name, headfile.AnyShape, Open)
			if err != nil {
				return nil, err
			}
			lists, err := headfile.Lists(mods, shortlist.Drafter{Head: &n.Head, Norm: &n.Norm}, of)
			if err != nil {
				return nil, err
			}
			return New(n, p.Shape, mods, lists, of)
		},
	})
}

// drafter is package grow's drafter over rows of an assistant, which keeps nothing of texts.
type drafter struct{ *grow.Drafter }

// Pages is empty: the keys and values are the target's.
func (drafter) Pages() []draft.Pages { return nil }

// New returns a drafter that grows trees of a shape with an assistant for the target. Logits cover the
// tokens of lists; if it is nil, those of the assistant's clusters or, if there are no clusters, all tokens.
func New(n *Network, shape grow.Shape, mods registry.Modifiers, lists shortlist.Method,
	of registry.Target) (draft.Drafter, error) {
	pool := of.Model.Pool()
	c := grow.Config{Shape: shape, Model: newRows(n, pool, of.Model.NewCache().Pages()), Target: of.Vocab,
		Lists: lists, Shared: sequence.Shared{Pool: pool, Vocab: n.Vocab}}
	var err error
	if lists == nil && n.Config.Centroids > 0 {
		if c.Lists, err = n.lists(pool, of.Shared); err != nil {
			return nil, err
		}
	}
	if c.Weights, err = headfile.TextModel(mods, &n.Config); err != nil {
		return nil, err
	}
	d, err := grow.New(c)
	if err != nil {
		return nil, err
	}
	return drafter{d}, nil
}

// lists returns the method that lists the tokens of each row's best clusters. All drafters of a target share it.
func (n *Network) lists(pool *par.Pool, shared *registry.Shared) (shortlist.Method, error) {
	type key struct{ *Network }
	v, err := shared.Get(key{n}, func() (any, error) {
		head, err := shortlist.NewHead(&n.Head, &n.Norm, nil, n.Vocab)
		if err != nil {
			return nil, err
		}
		router := &shortlist.Router{HiddenNorm: n.Norm, Out: n.Centroids,
			RouterConfig: shortlist.RouterConfig{Hidden: n.Hidden, Clusters: n.Config.Centroids, Output: true}}
		routing := &shortlist.Routing{Router: router, Clusters: n.clusters()}
		return shortlist.NewRouted(pool, head, nil, routing, shortlist.RoutedOptions{Clusters: n.Chosen, Own: true})
	})
	if err != nil {
		return nil, err
	}
	return v.(shortlist.Method).Fork(), nil
}
