// Package registry has grove's own drafters by name, and makes drafters from text: a name, options
// and modifiers. They include drafters of programs, which package draft registers.
package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/model"
)

// Target is what grove's own drafters may know about the model they draft for.
type Target struct {
	Vocab   int // tokens of the vocabulary
	Context int // most tokens of a text

	Model *model.Model // nil if the target is not package model's

	// Draft is the target's draft model, for drafters that were not given another; nil: there is
	// none. Open opens one by path, on the target's workers; it stays open as long as the target.
	// Nil: drafters cannot open files.
	Draft *model.Model
	Open  func(path string) (*model.Model, error)

	// Heads are the files of heads that the target was opened with; a family takes the first that
	// is of its kind. Shared lasts as long as the target; nil: nothing is kept.
	Heads  []Head
	Shared *Shared

	Auto string // the drafter that "auto" stands for; empty: see Resolve

	// Adapt makes a drafter's head learn while it drafts, for the modifier +adapt; nil: heads
	// cannot learn here.
	Adapt func(draft.Drafter) (draft.Drafter, error)
}

// Public returns the part of t that drafters of programs know.
func (t *Target) Public() draft.Target {
	p := draft.Target{Vocab: t.Vocab, Context: t.Context,
		New: func(text string) (draft.Drafter, error) { return New(text, *t) }}
	if t.Model != nil {
		p.Layers, p.Hidden = t.Model.Config.Layers, t.Model.Config.Hidden
		p.Tokenizer = t.Model.Tokenizer
	}
	return p
}

// Family is a kind of drafter.
type Family struct {
	Name  string
	Help  string // one line: what it drafts, and with what
	About string // how it works, in a few sentences
	Paper string // where the method was published; empty: nowhere

	// PaperOptions are the options of the method as published, where they differ from the defaults.
	PaperOptions string

	Needs string // required when the target is opened: "a draft model", "an EAGLE-3 head"; empty: nothing
	Test  bool   // for tests only: lists and help texts leave it out

	// Options is a pointer to a struct with the family's options at their defaults, for help texts;
	// nil if it has none. See option.Parse for its tags.
	Options any

	// Modifiers are the names of those that the family takes. New receives them parsed.
	Modifiers []string

	// Parts says that drafters follow "name:", each with its own modifiers. All of it is passed to New
	// as options.
	Parts bool

	// Auto is the text of the drafter that Auto may choose, and Rank its place among the families'
	// choices, the least first; empty: it is never chosen.
	Auto string
	Rank int

	// New makes a drafter. options is the text after "name:", which option.Parse reads if it is a list
	// of key=value.
	New func(options string, m Modifiers, target Target) (draft.Drafter, error)
}

var (
	familiesMu sync.RWMutex
	families   []Family
)

// Register adds one of grove's own families; packages call it in init. It panics on a second family
// with the same name, a programmer's mistake.
func Register(f Family) {
	if !f.Test {
		draft.Register(draft.Family{Name: f.Name, Help: f.Help, Options: f.Options})
	}
	familiesMu.Lock()
	defer familiesMu.Unlock()
	families = append(families, f)
}

// Families lists the families by name, without those for tests.
func Families() []Family {
	return slices.DeleteFunc(all(), func(f Family) bool { return f.Test })
}

// AutoFamilies lists the families that Auto may choose, the first choice first.
func AutoFamilies() []Family {
	list := slices.DeleteFunc(all(), func(f Family) bool { return f.Auto == "" })
	slices.SortStableFunc(list, func(a, b Family) int { return a.Rank - b.Rank })
	return list
}

// all lists grove's own families and those of programs.
func all() []Family {
	familiesMu.RLock()
	list := slices.Clone(families)
	familiesMu.RUnlock()
	for _, f := range draft.Families() {
		if f.New != nil {
			list = append(list, Family{Name: f.Name, Help: f.Help, Options: f.Options,
				New: func(options string, _ Modifiers, t Target) (draft.Drafter, error) {
					d, err := f.New(options, t.Public())
					if d == nil && err == nil {
						return nil, errors.New("its family's New returned neither a drafter nor an error: want one of them")
					}
					return d, err
				}})
		}
	}
	slices.SortStableFunc(list, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Plain is the word for plain decoding wherever a drafter is named, and Auto for the best drafter
// that a target was opened with. Neither is a family.
const (
	Plain = "plain"
	Auto  = "auto"
)

// New makes the drafter that text describes: a family's name, options after a colon, and modifiers,
// each after a plus: "eagle3:depth=5+text+freq:size=4096". "auto" is the drafter that Resolve
// names.
func New(text string, target Target) (draft.Drafter, error) {
	resolved, err := Resolve(text, target)
	if err != nil {
		return nil, err
	}
	name, options, modifiers := Split(resolved)
	var names []string
	for _, f := range all() {
		if f.Name != name {
			continue
		}
		var m Modifiers
		var err error
		if f.Parts {
			_, options, _ = strings.Cut(resolved, ":")
		} else {
			m, err = f.modifiers(modifiers)
		}
		var d draft.Drafter
		if err == nil {
			d, err = f.New(options, m, target)
		}
		switch {
		case err != nil || !m.Adapt:
		case target.Adapt == nil:
			err = fmt.Errorf("+%s: no head can learn here: leave it out", AdaptModifier)
		default:
			d, err = target.Adapt(d)
		}
		if err != nil {
			return nil, fmt.Errorf("drafter %q: %w", text, err)
		}
		return d, nil
	}
	for _, f := range Families() {
		names = append(names, f.Name)
	}
	hint := ""
	if slices.ContainsFunc(AllModifiers, func(m Modifier) bool { return m.Name == name }) {
		hint = " (it is a modifier: write it after a drafter's name, as in NAME+" + name + ", and in merge within round brackets)"
	}
	return nil, fmt.Errorf("drafter %q: there is no %q%s: want one of %s, or %s", text, name, hint,
		strings.Join(names, ", "), Auto)
}

// Resolve replaces the name auto in a drafter's text by the target's own choice, or else by the
// first choice of a family that can be made for the target. Modifiers stay. Other texts are
// returned as they are.
func Resolve(text string, target Target) (string, error) {
	name, options, modifiers := Split(text)
	if name != Auto {
		return text, nil
	}
	if options != "" {
		return "", fmt.Errorf("drafter %q: %s has no options: want those of the drafter that it stands for", text, Auto)
	}
	chosen := target.Auto
	if chosen == "" {
		for _, f := range AutoFamilies() {
			if _, err := New(f.Auto, target); err == nil {
				chosen = f.Auto
				break
			}
		}
	}
	if chosen == "" {
		return "", fmt.Errorf("drafter %q: no drafter can run: open the model with a head or a draft model", text)
	}
	return strings.Join(append([]string{chosen}, modifiers...), "+"), nil
}

// Listed returns the family's options with their defaults.
func (f *Family) Listed() []option.Option { return option.List(f.Options) }
