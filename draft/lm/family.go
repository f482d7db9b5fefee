// The drafters' names: lm with a shape, and a family for each shape.

package lm

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/shortlist"
)

// shapes are the families by name, in the order of help texts.
var shapes = []draft.Family{
	family("linear", "a draft model, drafting a chain of k tokens", DefaultLinear, PaperLinear,
		func(o *Linear) made { return made{o, o.Model, o.Preset, o.Options} }),
	family("fixed", "a draft model, drafting trees of fixed breadth and depth", DefaultFixed, PaperFixed,
		func(o *Fixed) made { return made{o, o.Model, o.Preset, o.Options} }),
	family("dynatree", "a draft model, drafting trees that follow its confidence and their own acceptance (DynaTree)", DefaultDynaTree, PaperDynaTree,
		func(o *DynaTree) made { return made{o, o.Model, o.Preset, o.Options} }),
	family("best-first", "a draft model, drafting the most probable nodes, as many as pay", DefaultBestFirst, nil,
		func(o *BestFirst) made { return made{o, o.Model, "", o.Options} }),
}

// made is what a family's options make.
type made struct {
	shape  Shape
	model  string // path of the draft model
	preset string
	list   shortlist.Options
}

// family makes the family of a shape whose options are an O: defaults and paper give them.
func family[O any](name, help string, defaults, paper func() O, of func(*O) made) draft.Family {
	o := defaults()
	return draft.Family{Name: name, Help: help, Options: &o, New: func(options string, target draft.Target) (draft.Drafter, error) {
		o := defaults()
		if err := draft.Parse(options, &o); err != nil {
			return nil, err
		}
		switch preset := of(&o).preset; preset {
		case "":
		case "paper":
			o = paper()
			if err := draft.Parse(options, &o); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("preset=%s: want paper, or none", preset)
		}
		with := of(&o)
		m := target.Draft
		switch {
		case with.model != "" && target.Open == nil:
			return nil, fmt.Errorf("model=%s: no model can be opened here", with.model)
		case with.model != "":
			var err error
			if m, err = target.Open(with.model); err != nil {
				return nil, err
			}
		case m == nil:
			return nil, fmt.Errorf("there is no draft model: name one with model=FILE, or open the target with one")
		}
		lists, err := openLists(with.list, m, target)
		if err != nil {
			return nil, err
		}
		return newDrafter(with.shape, lists, m, target)
	}}
}

type options struct {
	Shape string `draft:"shape" help:"linear, fixed, dynatree or best-first; further options are those of the drafter of that name"`
}

func init() {
	for _, f := range shapes {
		draft.Register(f)
	}
	draft.Register(draft.Family{
		Name:    "lm",
		Help:    "a draft model, drafting trees of a shape",
		Options: &options{Shape: defaultShape},
		New:     newLM,
	})
}

const defaultShape = "best-first"

// newLM reads shape=NAME and leaves the other options to the shape's family.
func newLM(text string, target draft.Target) (draft.Drafter, error) {
	name := defaultShape
	var rest []string
	for part := range strings.SplitSeq(text, ",") {
		if key, value, _ := strings.Cut(part, "="); strings.TrimSpace(key) == "shape" {
			name = strings.TrimSpace(value)
		} else {
			rest = append(rest, part)
		}
	}
	var names []string
	for _, f := range shapes {
		if f.Name == name {
			return f.New(strings.Join(rest, ","), target)
		}
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf("shape=%q: want one of %s", name, strings.Join(names, ", "))
}
