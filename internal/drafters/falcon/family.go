// The name of the drafter, and its options.

package falcon

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
)

// options are those of the default tree.
type options struct {
	Tree string `draft:"tree" help:"dynamic, best-first, linear, fixed or dynatree, each with the options of the drafter of that name; or static: the authors' tree of 166 nodes"`
	grow.Dynamic
}

// staticTree is the authors' tree for k = 2: the most probable children of each node, level by
// level. The release lists 166 nodes, one of them twice, without the root.
var staticTree = grow.Static{Children: [][]int{
	{20},
	{10, 2, 2, 1},
	{10, 2, 2, 1, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 1},
	{10, 2, 1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 1, 1, 2, 0, 1, 1},
	{10, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1},
	{9, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{9, 2, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1},
	{8, 2, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
}}

func init() {
	registry.Register(registry.Family{
		Name: "falcon", Help: "a Falcon head: two tokens per pass, dynamic trees",
		About: `A pass of the head, an LSTM and one layer that read the target's last hidden states, predicts the next k
tokens. Further passes begin k levels deeper, from the head's own states, so only one in k levels takes a pass. Trees are
EAGLE-2's dynamic trees; tree= chooses others.`,
		Paper: "Falcon: Faster and Parallel Inference of Large Language Models Through Enhanced " +
			"Semi-Autoregressive Drafting and Custom-Designed Decoding Tree, AAAI 2025",
		Needs: "a Falcon head", Options: &options{Tree: "dynamic", Dynamic: grow.DefaultDynamic()},
		Modifiers: registry.NetworkModifiers, Auto: "falcon:tree=best-first+text", Rank: 9, PaperOptions: "tree=static",
		New: func(text string, mods registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			p, err := grow.ParseHead(text, static)
			if err != nil {
				return nil, err
			}
			n, err := headfile.Choose(p.Model, target, &kind, "Falcon", headfile.AnyShape, Open)
			if err != nil {
				return nil, err
			}
			lists, err := headfile.Lists(mods, shortlist.Drafter{Head: &n.Head}, target)
			if err != nil {
				return nil, err
			}
			return New(n, p.Shape, mods.Text, lists, target.Model.Pool())
		},
	})
}

// static is the authors' tree as a kind of tree. It has no options.
var static = grow.Kind{
	Name: "static",
	Parse: func(text string) (grow.Parsed, error) {
		var o struct {
			Model string `draft:"model" help:"the head's file"`
		}
		err := option.Parse(text, &o)
		return grow.Parsed{Shape: &staticTree, Model: o.Model}, err
	},
}
