// The shapes by name, with options read from text.

package grow

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/shortlist"
)

// Kind is a shape that a text can name.
type Kind struct {
	Name, Help string
	Options    any // at their defaults, for help texts
	Parse      func(text string) (Parsed, error)
}

// Parsed is what a drafter's text says.
type Parsed struct {
	Shape Shape
	Model string // the drafter's file; empty: the target's own
	Lists shortlist.Options

	preset string
}

// Kinds are the shapes, in the order of help texts.
var Kinds = []Kind{
	kind("linear", "chains of k tokens", DefaultLinear, PaperLinear,
		func(o *Linear) Parsed { return Parsed{o, o.Model, o.Options, o.Preset} }),
	kind("fixed", "trees of fixed breadth and depth", DefaultFixed, PaperFixed,
		func(o *Fixed) Parsed { return Parsed{o, o.Model, o.Options, o.Preset} }),
	kind("dynatree", "trees that follow the drafter's confidence and their own acceptance (DynaTree)", DefaultDynaTree, PaperDynaTree,
		func(o *DynaTree) Parsed { return Parsed{o, o.Model, o.Options, o.Preset} }),
	kind("dynamic", "the best of trees that go on at each level's likeliest nodes (EAGLE-2)", DefaultDynamic, PaperDynamic,
		func(o *Dynamic) Parsed { return Parsed{o, o.Model, o.Options, o.Preset} }),
	kind("best-first", "the most probable nodes by the drafter and the text so far, as many as pay", DefaultBestFirst, DefaultBestFirst,
		func(o *BestFirst) Parsed { return Parsed{o, o.Model, o.Options, ""} }),
}

// kind makes the kind of a shape whose options are an O: defaults and paper give them.
func kind[O any](name, help string, defaults, paper func() O, of func(*O) Parsed) Kind {
	o := defaults()
	return Kind{name, help, &o, func(text string) (Parsed, error) {
		o := defaults()
		if err := draft.Parse(text, &o); err != nil {
			return Parsed{}, err
		}
		switch preset := of(&o).preset; preset {
		case "":
		case "paper":
			o = paper()
			if err := draft.Parse(text, &o); err != nil {
				return Parsed{}, err
			}
		default:
			return Parsed{}, fmt.Errorf("preset=%s: want paper, or none", preset)
		}
		return of(&o), nil
	}}
}

// Parse reads a text in which key=NAME names a kind, or without it the one that is usual, and everything else is that kind's options.
func Parse(text, key, usual string) (Parsed, error) {
	name := usual
	var rest []string
	for part := range strings.SplitSeq(text, ",") {
		if k, value, _ := strings.Cut(part, "="); strings.TrimSpace(k) == key {
			name = strings.TrimSpace(value)
		} else {
			rest = append(rest, part)
		}
	}
	var names []string
	for _, k := range Kinds {
		if k.Name == name {
			return k.Parse(strings.Join(rest, ","))
		}
		names = append(names, k.Name)
	}
	return Parsed{}, fmt.Errorf("%s=%q: want one of %s", key, name, strings.Join(names, ", "))
}
