// The drafters' names: one drafter, with the heads and trees of the papers.

package jet

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
)

func init() {
	const (
		causal  = "a JetSpec head"
		twoWays = "a DFlash head"
		jetspec = "JetSpec: Breaking the Scaling Ceiling of Speculative Decoding with Parallel Tree Drafting, arXiv 2606.18394"
	)
	for _, f := range []struct {
		name, help, about, source, needs string
		defaults                         Options
		auto                             string
		rank                             int
	}{
		{"jetspec", "a JetSpec head: a whole tree in one pass",
			`The head computes the next tokens of a block in one pass; every position sees those before it. The node with the
most probable path gets all its children at once (Algorithm 1).`,
			jetspec, causal, Options{Tree: onepass.AccumLogP}, "jetspec:tree=ddtree+text", 2},
		{"ddtree", "a DFlash head: the tree of the most probable paths (DDTree)",
			`The head computes the next tokens of a block in one pass; every position sees all others. The tree has the
paths whose product of probabilities is the largest.`,
			"Accelerating Speculative Decoding with Block Diffusion Draft Trees, arXiv 2604.12989", twoWays,
			Options{Tree: onepass.DDTree}, "ddtree", 4},
		{"dflash", "a DFlash head: a chain in one pass",
			"The head computes the next tokens of a block in one pass; the most probable token of each position makes a chain.",
			"DFlash: Block Diffusion for Flash Speculative Decoding, arXiv 2602.06036", twoWays,
			Options{Tree: onepass.Chain}, "", 0},
	} {
		family := registry.Family{
			Name: f.name, Help: f.help, About: f.about, Paper: f.source, Needs: f.needs, Options: &f.defaults,
			Modifiers: registry.HeadModifiers, Auto: f.auto, Rank: f.rank,
		}
		family.New = func(text string, mods registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			o := f.defaults
			o.Modifiers = mods
			if err := option.Parse(text, &o); err != nil {
				return nil, err
			}
			n, err := open(o.Model, target, f.needs == causal)
			if err != nil {
				return nil, err
			}
			return New(o, n, target)
		}
		registry.Register(family)
	}
}

// open opens the head in the file that the option model names, or the first of the target's heads:
// one that is causal, or is not.
func open(model string, target registry.Target, causal bool) (*Network, error) {
	called := map[bool]string{true: "causal (JetSpec)", false: "bidirectional (DFlash)"}[causal]
	wanted := func(s headfile.Shape) bool { return s.(*Config).Causal == causal }
	return headfile.Choose(model, target, &kind, called, wanted, Open)
}
