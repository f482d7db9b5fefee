// Package mtp drafts with the layer for multi-token prediction (MTP) that a model was trained with:
// MiMo's, Qwen's, GLM's and DeepSeek's, in the model's own file or in a separate one, or a layer
// that was trained for a model without one. The layer is an EAGLE head of version eagle.Native
// (package eagle). It is applied to its own states at every further depth, and grows trees as EAGLE
// heads do.
package mtp

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
)

func init() {
	registry.Register(registry.Family{
		Name: "mtp", Help: "a layer for multi-token prediction: dynamic trees",
		About: `A layer after the target's own layers reads the embedding of a token and the target's last hidden state before it, and
then drafts from its own states. A target that has one in its file needs no other file. Trees are EAGLE-2's dynamic
trees; tree= chooses others; linear makes the chains of other engines.`,
		Paper: "Better & Faster Large Language Models via Multi-token Prediction, arXiv 2404.19737; " +
			"MiMo, arXiv 2505.07608",
		Needs: "a target with an MTP layer, or an MTP head", Options: new(grow.DefaultHeadOptions()),
		Modifiers: registry.RoutedModifiers, Auto: "mtp:tree=best-first+text", Rank: 5, PaperOptions: "tree=linear",
		New: func(text string, mods registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			p, err := grow.ParseHead(text)
			if err != nil {
				return nil, err
			}
			n, err := headfile.Choose(p.Model, target, &kind, "MTP", headfile.AnyShape, Open)
			if err != nil {
				return nil, err
			}
			output := shortlist.Drafter{Head: &n.Head, Tokens: n.Tokens, Embed: n.Embed}
			lists, err := headfile.Lists(mods, output, target)
			if err != nil {
				return nil, err
			}
			return eagle.New(n, p.Shape, mods.Text, lists, target.Model.Pool())
		},
	})
}
