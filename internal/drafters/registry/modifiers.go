// Modifiers: additions to the method in a drafter's text, "eagle3+text+freq:size=4096".

package registry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/shortlist"
)

// Modifiers are those of one drafter.
type Modifiers struct {
	// Text combines the drafter's probabilities with n-grams of the text so far, and with logits
	// that the target computed off the accepted paths.
	Text bool

	// Adapt trains the drafter's head while it drafts. New sets that up, with Target.Adapt.
	Adapt bool

	// List computes the drafter's output for part of the vocabulary; its Method is empty without
	// such a modifier.
	List shortlist.Options
}

// Modifier is a kind of modifier, for help texts.
type Modifier struct {
	Name, Help, Paper string

	keys []string // of its options, which are fields of shortlist.Options

	paperOptions string // of the method as published, where they differ from the defaults
}

// TextModifier is the name of the modifier that Modifiers.Text holds.
const TextModifier = "text"

// AdaptModifier is the name of the modifier that Modifiers.Adapt holds.
const AdaptModifier = "adapt"

// NetworkModifiers are for drafters that run a network, HeadModifiers for drafters whose head can also
// learn, and RoutedModifiers for such drafters that a router can serve.
var (
	NetworkModifiers = []string{TextModifier, "freq", "freq-pa", "context"}
	HeadModifiers    = append(slices.Clip(NetworkModifiers), AdaptModifier)
	RoutedModifiers  = append(slices.Clip(HeadModifiers), "dynaspec", "dynaspec-fixed")
)

// AllModifiers lists all modifiers.
var AllModifiers = []Modifier{
	{Name: TextModifier, Help: "rank candidates also by n-grams of the text so far and by the target's logits off the accepted paths"},
	{Name: AdaptModifier, Help: "train the head on what the target chooses, while decoding",
		Paper: "SpecBlock, arXiv 2605.07243, section 3.4"},
	{Name: "freq", Help: "compute drafts for the most frequent tokens only", Paper: "FR-Spec, arXiv 2502.14856",
		keys: ranked},
	{Name: "freq-pa", Help: "like freq, with fewer tokens at later steps of a draft", Paper: "DynaSpec, appendix A.1",
		keys: ranked},
	{Name: "context", Help: "compute drafts for the most frequent tokens and those of the text so far",
		keys: append(slices.Clip(ranked), "extra")},
	{
		Name: "dynaspec", Help: "compute drafts for clusters of tokens that a router selects, fewer at later steps",
		Paper: "DynaSpec, arXiv 2510.13847, section 4", keys: routed, paperOptions: ownLists,
	},
	{Name: "dynaspec-fixed", Help: "like dynaspec, with equally many clusters at every step",
		Paper: "DynaSpec, arXiv 2510.13847", keys: routed, paperOptions: ownLists},
}

// ownLists are DynaSpec's lists: of one row, and without tokens of the text.
const ownLists = "own=true,extra=-1"

var ranked, routed = []string{"size", "ranks"}, []string{"size", "extra", "own", "router"}

// Listed returns the modifier's options with their defaults.
func (m *Modifier) Listed() []option.Option {
	return slices.DeleteFunc(option.List(new(shortlist.Options)),
		func(o option.Option) bool { return !slices.Contains(m.keys, o.Key) })
}

// parse reads the modifier's options.
func (m *Modifier) parse(text string, into *shortlist.Options) error {
	for part := range strings.SplitSeq(text, ",") {
		key, _, _ := strings.Cut(part, "=")
		key = strings.TrimSpace(key)
		switch {
		case key == "" || slices.Contains(m.keys, key):
		case len(m.keys) == 0:
			return fmt.Errorf("option %q: it has no options", key)
		default:
			return fmt.Errorf("option %q: there is no such option: want some of %s", key, strings.Join(m.keys, ", "))
		}
	}
	return option.Parse(text, into)
}

// nextModifier finds a + that begins a modifier. A + within an option's value, such as a path's, is
// followed by other characters.
var nextModifier = regexp.MustCompile(`\+[ ]*[a-z][a-z0-9-]*[ ]*(:|\+|$)`)

// Split splits a drafter's text: NAME[:options]{+MODIFIER[:options]}. The name ends at the first colon
// or plus.
func Split(text string) (name, options string, modifiers []string) {
	method, rest := text, ""
	if at := nextModifier.FindStringIndex(text); at != nil {
		method, rest = text[:at[0]], text[at[0]+1:]
	}
	name, options, _ = strings.Cut(method, ":")
	for rest != "" {
		at := nextModifier.FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest)}
		}
		modifiers = append(modifiers, strings.TrimSpace(rest[:at[0]]))
		rest = strings.TrimPrefix(rest[at[0]:], "+")
	}
	return strings.TrimSpace(name), strings.TrimSpace(options), modifiers
}

// modifiers reads the texts of a drafter's modifiers.
func (f *Family) modifiers(texts []string) (m Modifiers, err error) {
	var seen []string
	for _, text := range texts {
		name, options, _ := strings.Cut(text, ":")
		name = strings.TrimSpace(name)
		switch {
		case !slices.Contains(f.Modifiers, name):
			return m, fmt.Errorf("+%s: %s", name, f.wanted())
		case slices.Contains(seen, name):
			return m, fmt.Errorf("+%s is given twice: want it once", name)
		case name == TextModifier:
			m.Text = true
		case name == AdaptModifier:
			m.Adapt = true
		case m.List.Method != "":
			return m, fmt.Errorf("+%s after +%s: want one shortlist", name, m.List.Method)
		default:
			m.List.Method = name
		}
		at := slices.IndexFunc(AllModifiers, func(o Modifier) bool { return o.Name == name })
		if err := AllModifiers[at].parse(options, &m.List); err != nil {
			return m, fmt.Errorf("+%s: %w", name, err)
		}
		seen = append(seen, name)
	}
	return m, nil
}

// wanted lists the modifiers that the family takes, for errors.
func (f *Family) wanted() string {
	if len(f.Modifiers) == 0 {
		return f.Name + " takes no modifiers"
	}
	return fmt.Sprintf("%s takes +%s", f.Name, strings.Join(f.Modifiers, ", +"))
}
