// The drafter's name and its options.

package specblock

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
)

func init() {
	registry.Register(registry.Family{
		Name: "specblock", Help: "a SpecBlock head: trees of blocks, each of which continues another",
		About: `A pass computes a block of tokens, each of which sees the ones before it. Further passes start blocks at the most
probable nodes. A rank head chooses the number of children of every node. With +text the tree has the most probable
nodes instead.`,
		Paper: "SpecBlock: Block-Iterative Speculative Decoding with Dynamic Tree Drafting, arXiv 2605.07243",
		Needs: "a SpecBlock head", Options: new(DefaultOptions),
		Modifiers: registry.HeadModifiers, Auto: "specblock:blocks=3,starts=2,cached=1+text", Rank: 3,
		New: func(text string, mods registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			o := DefaultOptions
			o.Modifiers = mods
			if err := option.Parse(text, &o); err != nil {
				return nil, err
			}
			n, err := headfile.Choose(o.Model, target, &kind, "SpecBlock", headfile.AnyShape, Open)
			if err != nil {
				return nil, err
			}
			return New(o, n, target)
		},
	})
}
