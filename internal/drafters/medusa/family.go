package medusa

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
)

func init() {
	o := Options{Tree: Static}
	registry.Register(registry.Family{
		Name: arch, Help: "Medusa heads: a static tree in one pass",
		About: `Each head drafts one of the next tokens from the last hidden state of the target, all in one pass.
Candidates form a tree of a fixed shape, a template: the one in the heads' file, or the one of Medusa's
release for 7B models. tree=best-first takes the most probable paths instead.`,
		Paper:   "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads, arXiv 2401.10774",
		Needs:   "Medusa heads",
		Options: &o, Modifiers: registry.HeadModifiers, Auto: arch + ":tree=best-first+text", Rank: 8, PaperOptions: "tree=" +
			Paper,
		New: func(text string, mods registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			o := o
			o.Modifiers = mods
			if err := option.Parse(text, &o); err != nil {
				return nil, err
			}
			n, err := headfile.Choose(o.Model, target, &kind, "Medusa", headfile.AnyShape, Open)
			if err != nil {
				return nil, err
			}
			return New(o, n, target)
		},
	})
}
