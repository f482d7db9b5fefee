// The drafters' names: one drafter, with the heads and trees of the papers.

package jet

import (
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/onepass"
)

// Kinds of heads.
const (
	Causal        = "causal"
	Bidirectional = "bidirectional"
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
			jetspec, causal, Options{Head: Causal, Tree: onepass.AccumLogP}, "jetspec:tree=ddtree+text", 2},
		{"ddtree", "a DFlash head: the tree of the most probable paths (DDTree)",
			`The head computes the next tokens of a block in one pass; every position sees all others. The tree has the
paths whose product of probabilities is the largest.`,
			"Accelerating Speculative Decoding with Block Diffusion Draft Trees, arXiv 2604.12989", twoWays,
			Options{Head: Bidirectional, Tree: onepass.DDTree}, "ddtree", 4},
		{"dflash", "a DFlash head: a chain in one pass",
			"The head computes the next tokens of a block in one pass; the most probable token of each position makes a chain.",
			"DFlash: Block Diffusion for Flash Speculative Decoding, arXiv 2602.06036", twoWays,
			Options{Head: Bidirectional, Tree: onepass.Chain}, "", 0},
	} {
		family := draft.Family{
			Name: f.name, Help: f.help, About: f.about, Paper: f.source, Needs: f.needs, Options: &f.defaults,
			Modifiers: draft.HeadModifiers, Auto: f.auto, Rank: f.rank,
		}
		family.New = func(text string, mods draft.Modifiers, target draft.Target) (draft.Drafter, error) {
			o := f.defaults
			o.Modifiers = mods
			if err := draft.Parse(text, &o); err != nil {
				return nil, err
			}
			h, err := o.open(target)
			if err != nil {
				return nil, err
			}
			return New(o, h.Network, target)
		}
		draft.Register(family)
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
