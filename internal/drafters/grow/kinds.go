// Shapes by name, with options read from text.

package grow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/drafters/option"
)

// Kind is a shape that a text can name.
type Kind struct {
	Name  string
	Help  string // one line: the trees
	About string // how they grow
	Paper string // where they were published

	Options any // at their defaults, for help texts
	Parse   func(text string) (Parsed, error)
}

// Parsed has a kind's options, read from a drafter's text.
type Parsed struct {
	Shape Shape
	Model string // the drafter's file; empty: the target's own
}

// Kinds lists the shapes in the order of help texts.
var Kinds = []Kind{
	kind(Kind{
		Name: "linear", Help: "chains of k tokens",
		About: "The draft model decodes k tokens, one after the other, and the target verifies them together.",
		Paper: "Fast Inference from Transformers via Speculative Decoding, arXiv 2211.17192",
	}, DefaultLinear, func(o *Linear) Parsed { return Parsed{o, o.Model} }),
	kind(Kind{
		Name: "fixed", Help: "trees of fixed breadth and depth",
		About: "Every node that is probable enough gets b children, down to depth d. The draft model runs once for each level.",
		Paper: "the fixed-tree baseline of DynaTree",
	}, DefaultFixed, func(o *Fixed) Parsed { return Parsed{o, o.Model} }),
	kind(Kind{
		Name: "dynatree", Help: "trees as wide as the draft model is uncertain (DynaTree)",
		About: `A node gets few children where the draft model is confident and many where it is not. Paths stop where they
become improbable. After every round, the measured acceptance adjusts the depth and the confidence limits.`,
		Paper: "DynaTree",
	}, DefaultDynaTree, func(o *DynaTree) Parsed { return Parsed{o, o.Model} }),
	kind(Kind{
		Name: "dynamic", Help: "the most probable nodes of a tree grown level by level (EAGLE-2)",
		About: `Each pass expands the k most probable nodes of the last level. The n most probable nodes of all levels are the
tree.`,
		Paper: "EAGLE-2: Faster Inference of Language Models with Dynamic Draft Trees, arXiv 2406.16858",
	}, DefaultDynamic, func(o *Dynamic) Parsed { return Parsed{o, o.Model} }),
	kind(Kind{
		Name: "best-first", Help: "the most probable nodes of all",
		About: `Each pass expands the most probable nodes that have no children yet, wherever they are in the tree. The tree grows
while another pass is expected to pay off. With +text the drafter's probabilities are combined with n-grams of the text so
far, which also extend the tree beyond the draft model's passes.`,
	}, DefaultBestFirst, func(o *BestFirst) Parsed { return Parsed{o, o.Model} }),
}

// kind completes the kind of a shape with options of type O and their defaults.
func kind[O any](k Kind, defaults func() O, of func(*O) Parsed) Kind {
	o := defaults()
	k.Options = &o
	k.Parse = func(text string) (Parsed, error) {
		o := defaults()
		if err := option.Parse(text, &o); err != nil {
			return Parsed{}, err
		}
		return of(&o), nil
	}
	return k
}

// HeadOptions are the options of drafters with a head and their usual tree, that of the papers.
type HeadOptions struct {
	Tree string `draft:"tree" help:"dynamic, best-first, linear, fixed or dynatree; each has the options of the drafter of that name"`
	Dynamic
}

// DefaultHeadOptions returns the options for a text that names none.
func DefaultHeadOptions() HeadOptions { return HeadOptions{Tree: "dynamic", Dynamic: DefaultDynamic()} }

// ParseHead reads a text. tree=NAME names one of Kinds or more; without it the tree is the usual one. The rest of the
// text is that kind's options.
func ParseHead(text string, more ...Kind) (Parsed, error) {
	name := DefaultHeadOptions().Tree
	var rest []string
	for part := range strings.SplitSeq(text, ",") {
		if k, value, _ := strings.Cut(part, "="); strings.TrimSpace(k) == "tree" {
			name = strings.TrimSpace(value)
		} else {
			rest = append(rest, part)
		}
	}
	var names []string
	for _, k := range slices.Concat(Kinds, more) {
		if k.Name == name {
			return k.Parse(strings.Join(rest, ","))
		}
		names = append(names, k.Name)
	}
	return Parsed{}, fmt.Errorf("tree=%q: want one of %s", name, strings.Join(names, ", "))
}
