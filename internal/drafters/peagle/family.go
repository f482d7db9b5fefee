// The names of the drafters.

package peagle

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
)

// Options of the drafters. There is no dynaspec among them: its router reads the state of a node's
// parent, but one pass gives only one state for each depth.
type Options struct {
	Tree  string `draft:"tree" help:"ddtree, accum-logp or chain"`
	Width int    `draft:"width" help:"maximum children of a node (0 to 1024); 0: no limit with ddtree, otherwise 7"`
	Depth int    `draft:"depth" help:"maximum depth; 0: the tokens that a pass drafts, and with +text beyond them"`
	Model string `draft:"model" help:"GGUF file or folder of the head; empty: the one the model was opened with"`

	registry.Modifiers
}

func init() {
	for _, f := range []struct {
		name, help, about, paper, needs string
		masks                           bool
	}{
		{pEagle, "a P-EAGLE head: a tree of the tokens that one pass drafts",
			`The head is EAGLE-3's, with mask rows for the places where the target has not been: one pass gives the
distributions of the next tokens. The tree has the paths whose product of probabilities is the largest; the paper's
chain is tree=chain.`,
			"P-EAGLE: Parallel-Drafting EAGLE with Scalable Training, arXiv 2602.01469", "a P-EAGLE head", false},
		{parallelSpec, "a ParallelSpec head: a tree of the tokens that one pass drafts",
			`As peagle, with an embedding of its own for each mask row. The paper's code is not published: the layers are
P-EAGLE's.`,
			"ParallelSpec: Parallel Drafter for Efficient Speculative Decoding, arXiv 2410.05589",
			"a ParallelSpec head", true},
	} {
		defaults := Options{Tree: onepass.DDTree}
		family := registry.Family{
			Name: f.name, Help: f.help, About: f.about, Paper: f.paper, Needs: f.needs, Options: &defaults,
			Modifiers: registry.HeadModifiers, Auto: f.name + "+text", Rank: 6, PaperOptions: "tree=chain",
		}
		family.New = func(text string, mods registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			o := defaults
			o.Modifiers = mods
			if err := option.Parse(text, &o); err != nil {
				return nil, err
			}
			called := map[bool]string{true: "ParallelSpec", false: "P-EAGLE"}[f.masks]
			wanted := func(s headfile.Shape) bool { return s.(*Config).Masks > 0 == f.masks }
			n, err := headfile.Choose(o.Model, target, &kind, called, wanted, Open)
			if err != nil {
				return nil, err
			}
			return New(o, n, target)
		}
		registry.Register(family)
	}
}
