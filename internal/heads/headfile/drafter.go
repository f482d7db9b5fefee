// Steps shared by the constructors of drafters with heads of all kinds.

package headfile

import (
	"fmt"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
)

// Choose opens the head in the file that the option model names, or, if model is empty, the first of the
// target's heads that is of the kind and whose shape is wanted. Error messages call such a head called.
func Choose[H any](model string, target registry.Target, kind *Kind, called string, wanted func(s Shape) bool,
	open func(registry.Head, registry.Target) (H, error)) (none H, err error) {
	h := registry.Head{Name: model}
	switch {
	case target.Model == nil:
		err = fmt.Errorf("the head reads the target's hidden states, and this kind of target has none")
	case model == "":
		h, err = Find(target, kind, called, wanted)
	default:
		var f *Head
		f, err = Read(h, kind)
		_, err = With(h, f, err, func(f *Head) (bool, error) {
			if !wanted(f.Shape) {
				return false, fmt.Errorf("model=%s is a %s: want %s", model, f.Shape.Describe(f.Own()), called)
			}
			return true, nil
		})
	}
	if err != nil {
		return none, err
	}
	return open(h, target)
}

// AnyShape accepts heads of every shape.
func AnyShape(Shape) bool { return true }

// Lists returns the shortlist of a head's output that modifiers name, or nil if they name none. d
// has the output matrix, its norm, its tokens and, for a router, the embedding.
func Lists(mods registry.Modifiers, d shortlist.Drafter, target registry.Target) (shortlist.Method, error) {
	d.Pool = target.Model.Pool()
	d.Vocab = target.Model.Config.Vocab
	d.Tokenizer = target.Model.Tokenizer
	return registry.Shortlists(mods.List, d, d.Head, target)
}

// TextModel returns the weights of the modifier +text that were fitted for a head, or nil without the modifier.
func TextModel(mods registry.Modifiers, s Shape) (*textrank.Model, error) {
	if !mods.Text {
		return nil, nil
	}
	return textrank.NewModelFrom(s.Common().TextWeights)
}
