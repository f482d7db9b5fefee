// The drafters' names: one drafter, with the papers' heads and trees as defaults.

package jet

import (
	"fmt"

	"github.com/grovellm/grove/draft"
)

// Kinds of heads.
const (
	Causal        = "causal"
	Bidirectional = "bidirectional"
)

func init() {
	for _, f := range []struct {
		name, help      string
		defaults, paper Options
	}{
		{"jet", "a block head, drafting a whole tree in one pass", Options{Head: Causal, Tree: Conditioned}, Options{Head: Causal, Tree: AccumLogP}},
		{"jetspec", "a causal block head, drafting JetSpec's trees, put right by the text", Options{Head: Causal, Tree: Conditioned}, Options{Head: Causal, Tree: AccumLogP}},
		{"ddtree", "a block head that looks both ways, drafting the most probable prefixes (DDTree)", Options{Head: Bidirectional, Tree: DDTree}, Options{Head: Bidirectional, Tree: DDTree}},
		{"dflash", "a block head that looks both ways, drafting a chain (DFlash)", Options{Head: Bidirectional, Tree: Chain}, Options{Head: Bidirectional, Tree: Chain}},
	} {
		draft.Register(draft.Family{Name: f.name, Help: f.help, Options: &f.defaults, New: func(text string, target draft.Target) (draft.Drafter, error) {
			o := f.defaults
			if err := draft.Parse(text, &o); err != nil {
				return nil, err
			}
			switch preset := o.Preset; preset {
			case "":
			case "paper":
				o = f.paper
				if err := draft.Parse(text, &o); err != nil {
					return nil, err
				}
			default:
				return nil, fmt.Errorf("preset=%s: want paper, or none", preset)
			}
			h, err := o.open(target)
			if err != nil {
				return nil, err
			}
			return New(o, h.Network, target)
		}})
	}
}

// open opens the head that the options name.
func (o *Options) open(target draft.Target) (*Head, error) {
	if o.Head != Causal && o.Head != Bidirectional && (o.Head != "" || o.Model == "") {
		return nil, fmt.Errorf("head=%q: want %s or %s, or none where model=FILE says it", o.Head, Causal, Bidirectional)
	}
	if o.Model == "" {
		return Find(target, o.Head == Causal)
	}
	h, err := Open(draft.Head{Name: o.Model}, target)
	if err != nil {
		return nil, err
	}
	if kind := h.kind(); o.Head != "" && o.Head != kind {
		return nil, fmt.Errorf("model=%s is a %s head: want a %s one, or say head=%s", o.Model, kind, o.Head, kind)
	}
	return h, nil
}

// kind says which way a block's rows look.
func (c *Config) kind() string {
	if c.Causal {
		return Causal
	}
	return Bidirectional
}
