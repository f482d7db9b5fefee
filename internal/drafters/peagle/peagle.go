// Package peagle drafts with a P-EAGLE head (arXiv 2602.01469): EAGLE-3's layers, of which one pass
// gives the next tokens at once. Mask rows replace the tokens and features that the target has not
// computed yet. In the ParallelSpec variant (arXiv 2410.05589) each mask row has its own embedding.
// Trees are built from the distributions as with a block head (package onepass).
//
// The entry of the last committed token is computed again, as part of the text, when the next token
// is committed.
package peagle

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/nn"
)

// drafter is package onepass's drafter over the blocks of a head.
type drafter struct {
	*onepass.Drafter
	blocks *blocks
}

// New returns a drafter with a head that fits the target.
func New(o Options, n *Network, target registry.Target) (draft.Drafter, error) {
	shape, err := onepass.NewShape(o.Tree, o.Width, 0)
	if err != nil {
		return nil, err
	}
	b := &blocks{trainable: trainable{n}}
	d, err := onepass.New(onepass.Config{
		Model: b, Head: &n.Config, Shape: shape, Depth: o.Depth, Modifiers: o.Modifiers, Target: target,
	})
	return &drafter{d, b}, err
}

// blocks implements a head's blocks for package onepass.
type blocks struct {
	trainable
	anchors, from []int32 // of the current Run
	bufs          Buffers
}

// Block returns a block whose first row drafts too, and whose rows see those before them.
func (b *blocks) Block() onepass.Block { return onepass.Block{Depths: b.Depths, Causal: true} }

func (b *blocks) Pages() nn.Pages { return b.Base.Pages() }
func (b *blocks) Text() sequence.TextOptions {
	return sequence.TextOptions{Layers: len(b.Taps), Ahead: true, Rows: 1, Window: b.Context}
}

func (b *blocks) Read(e *nn.Exec, f *nn.Forest, tokens []int32, taps nn.Mat) {
	b.Network.Read(e, f, tokens, taps, &b.bufs)
}

// Run computes the anchors' entries and the mask rows below each.
func (b *blocks) Run(e *nn.Exec, f *nn.Forest, tokens, first []int32, taps, x nn.Mat) {
	b.anchors, b.from = b.anchors[:0], b.from[:0]
	for i, row := range first {
		end := len(tokens)
		if i+1 < len(first) {
			end = int(first[i+1])
		}
		b.anchors, b.from = append(b.anchors, tokens[row]), append(b.from, int32(i))
		for d := range int32(end) - row - 1 {
			b.from = append(b.from, int32(len(first))+d)
		}
	}
	b.Network.Run(e, f, b.anchors, taps, b.from, x, &b.bufs)
}
