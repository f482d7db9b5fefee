package eagle

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// timed returns an EAGLE-3 head for a target: a layer of the target's own kind. It drafts the trees
// of the paper's runs, but with all of their candidates, so that random numbers cut no row.
func timed(target model.Config, w model.Weights, pool *par.Pool) (*headfile.Timed, error) {
	c := Config{Base: headfile.Base{Config: target, Taps: []int{2, target.Layers / 2, target.Layers - 3},
		DraftVocab: target.Vocab, TargetLayers: target.Layers}, Version: 3}
	c.Layers, c.Loops = 1, 0
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out, err := w.Matrix("output.weight", c.Vocab, c.Hidden)
	if err != nil {
		return nil, err
	}
	n, err := NewNetwork(c, w, nil, &model.Network{Embed: out, Head: nn.Linear{W: out}})
	if err != nil {
		return nil, err
	}
	shape := grow.DefaultDynamic()
	shape.N = 1 + shape.K + shape.K*shape.K*shape.Depth
	return &headfile.Timed{
		Output: shortlist.Drafter{Head: &n.Head, Norm: n.Norm, Embed: n.Embed}, Layers: n.Blocks[0].Bytes(),
		Budget: shape.N, Depth: shape.Depth + 1, Least: shape.K * shape.Depth,
		New: func(lists shortlist.Method) (draft.Drafter, error) {
			return New(n, &shape, false, lists, pool)
		},
	}, nil
}
