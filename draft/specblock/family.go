// The drafter's name and its options.

package specblock

import (
	"fmt"

	"github.com/grovellm/grove/draft"
)

func init() {
	defaults := DefaultOptions
	draft.Register(draft.Family{
		Name: "specblock", Help: "a SpecBlock head: trees of blocks, each of which continues another",
		About: `A pass computes a block of tokens, each of which sees the ones before it. Further passes start blocks at the most
probable nodes. tree=ranked is the paper's tree: its rank head chooses the number of children of every node.`,
		Paper: "SpecBlock: Block-Iterative Speculative Decoding with Dynamic Tree Drafting, arXiv 2605.07243",
		Needs: "a SpecBlock head", Options: &defaults,
		New: func(text string, target draft.Target) (draft.Drafter, error) {
			o := DefaultOptions
			if err := draft.Parse(text, &o); err != nil {
				return nil, err
			}
			switch o.Preset {
			case "":
			case "paper":
				o = PaperOptions
				if err := draft.Parse(text, &o); err != nil {
					return nil, err
				}
			default:
				return nil, fmt.Errorf("preset=%s: want paper, or no preset", o.Preset)
			}
			h, err := o.open(target)
			if err != nil {
				return nil, err
			}
			return New(o, h.Network, target)
		},
	})
}

// open opens the head that the options name.
func (o *Options) open(target draft.Target) (*Head, error) {
	if o.Model == "" {
		return Find(target)
	}
	return Open(draft.Head{Name: o.Model}, target)
}
