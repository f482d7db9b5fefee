// Package jet drafts with a block head: one pass of a few small layers over the target's own hidden
// states gives the distributions of all depths at once, and a tree is built from them (package
// onepass). A causal head is JetSpec's, and one that looks both ways is DFlash's.
//
// The drafters are those of the papers, with one deviation: above temperature 0 candidates are drawn
// with the noise of the target's own choice. In the papers they are the most probable, as they are
// here at temperature 0.
package jet

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/nn"
)

// Options of the drafter. It does not support dynaspec, whose router reads the state of a node's
// parent: a block head has states only of depths.
type Options struct {
	Tree   string  `draft:"tree" help:"accum-logp, ddtree, hybrid, entropy or chain"`
	Width  int     `draft:"width" help:"maximum children of a node (0 to 1024); 0: no limit with ddtree, otherwise 7"`
	Depth  int     `draft:"depth" help:"maximum depth (0 to the block's length less 1); 0: the block, and with +text beyond it"`
	Lambda float64 `draft:"lambda" help:"for hybrid: weight of a depth's entropy relative to the path's log-probability (above 0)"`
	Model  string  `draft:"model" help:"GGUF file or Hugging Face folder of the head; empty: the one the model was opened with"`

	registry.Modifiers
}

// New returns a drafter with a head that fits the target.
func New(o Options, n *Network, target registry.Target) (draft.Drafter, error) {
	shape, err := onepass.NewShape(o.Tree, o.Width, o.Lambda)
	if err != nil {
		return nil, err
	}
	b := &blocks{trainable: trainable{n}}
	d, err := onepass.New(onepass.Config{
		Model: b, Head: &n.Config, Shape: shape, Depth: o.Depth, Modifiers: o.Modifiers, Target: target,
	})
	if n.Window > 0 { // attention with a window has no gradient
		return d, err
	}
	return &drafter{d, b}, err
}

// drafter is package onepass's over blocks of a head.
type drafter struct {
	*onepass.Drafter
	blocks *blocks
}

// blocks is a head as a onepass.Model.
type blocks struct {
	trainable
	bufs Buffers
}

// Block returns the layout: the anchor's row drafts nothing.
func (b *blocks) Block() onepass.Block {
	return onepass.Block{Depths: b.Config.Block - 1, Skip: 1, Causal: b.EndsEarly()}
}

func (b *blocks) Text() sequence.TextOptions {
	return sequence.TextOptions{Layers: len(b.Taps), Rows: 1, Window: b.Config.Context}
}

// Read adds to the head's context, which is made only from taps.
func (b *blocks) Read(e *nn.Exec, f *nn.Forest, _ []int32, taps nn.Mat) {
	b.Context(e, f, taps, &b.bufs)
}

func (b *blocks) Run(e *nn.Exec, f *nn.Forest, tokens, _ []int32, _, x nn.Mat) {
	b.Network.Run(e, f, tokens, x, &b.bufs)
}
