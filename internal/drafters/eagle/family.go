// The drafters' names: a family for each version of the heads.

package eagle

import (
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
)

func init() {
	for _, f := range []struct {
		name, help, about, paper, needs string
		version, rank                   int
	}{
		{"eagle3", "an EAGLE-3 head: EAGLE-2's dynamic trees",
			`The head is one layer that reads hidden states of three of the target's layers, and drafts on from its own
states. Trees are EAGLE-2's dynamic trees; tree= chooses others.`,
			"EAGLE-3: Scaling up Inference Acceleration of LLMs via Training-Time Test, arXiv 2503.01840",
			"an EAGLE-3 head", 3, 1},
		{"eagle2", "an EAGLE-1 or EAGLE-2 head: dynamic trees",
			`The head is one layer that reads the hidden states of the target's last layer, and drafts on from its own
states. Trees are EAGLE-2's dynamic trees; tree= chooses others.`,
			"EAGLE, arXiv 2401.15077; EAGLE-2, arXiv 2406.16858", "an EAGLE-1 or EAGLE-2 head", 2, 5},
	} {
		family := registry.Family{
			Name: f.name, Help: f.help, About: f.about, Paper: f.paper, Needs: f.needs, Rank: f.rank,
			Options: new(grow.DefaultHeadOptions()), Modifiers: registry.RoutedModifiers, Auto: f.name + ":tree=best-first+text",
		}
		family.New = func(text string, mods registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			p, err := grow.ParseHead(text)
			if err != nil {
				return nil, err
			}
			called := fmt.Sprintf("EAGLE-%d", f.version)
			wanted := func(s headfile.Shape) bool { return s.(*Config).Version == f.version }
			n, err := headfile.Choose(p.Model, target, &kind, called, wanted, Open)
			if err != nil {
				return nil, err
			}
			output := shortlist.Drafter{Head: &n.Head, Norm: n.Norm, Tokens: n.Tokens, Embed: n.Embed}
			lists, err := headfile.Lists(mods, output, target)
			if err != nil {
				return nil, err
			}
			return New(n, p.Shape, mods.Text, lists, target.Model.Pool())
		}
		registry.Register(family)
	}
}
