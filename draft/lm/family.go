// The drafters' names: lm with a shape, and a family for each shape.

package lm

import (
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/grow"
)

type options struct {
	Shape string `draft:"shape" help:"linear, fixed, dynatree, dynamic or best-first; further options are those of the drafter of that name"`
}

const usual = "best-first"

func init() {
	for _, k := range grow.Kinds {
		if k.Name == "dynamic" { // the name is heads' trees': lm:shape=dynamic
			continue
		}
		draft.Register(draft.Family{
			Name: k.Name, Help: "a draft model: " + k.Help, About: k.About, Paper: k.Paper, Needs: "a draft model", Options: k.Options, New: family(k.Parse),
		})
	}
	draft.Register(draft.Family{
		Name: "lm", Help: "a draft model: trees of the shape that an option names", Needs: "a draft model", Options: &options{Shape: usual},
		About: "lm:shape=fixed is the drafter fixed, and so on for the other shapes; dynamic, EAGLE-2's trees, has no name without lm.",
		New:   family(func(text string) (grow.Parsed, error) { return grow.Parse(text, "shape", usual) }),
	})
}

// family makes drafters of texts.
func family(parse func(text string) (grow.Parsed, error)) func(text string, target draft.Target) (draft.Drafter, error) {
	return func(text string, target draft.Target) (draft.Drafter, error) {
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
		return New(p.Shape, p.Lists, m, target)
	}
}
