package jet

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Begun as random numbers a block head learns as slowly as any language model: all that its mask
// rows know of the anchor must come through attention that looks everywhere at first. But the
// target's blocks are layers of the same kind, and nearly do what a head is for. With the mean of
// the taps in place of each block's own residual stream the anchor's row, which is discarded, says
// what the target says in nine places of ten before any training.
//
// So a head begins as the target: its layers are some of the target's blocks, with the most active
// units of their MLPs where the head's are narrower; and before them a layer whose attention hands
// the anchor's embedding to all rows.

// checkFrom refuses layers that cannot begin as From has it.
func (r *Recipe) checkFrom(target *model.Config) error {
	if len(r.From) == 0 {
		return nil
	}
	if err := r.CheckFrom(r.From, target); err != nil {
		return err
	}
	blocks := train.BlocksOf(r.From)
	switch {
	case len(blocks) == 0:
		return fmt.Errorf("layers begin as %v: want a block of the target among them, or no list for random weights",
			r.From)
	case len(blocks) < len(r.From) && r.KVHeads*r.HeadDim > target.Hidden:
		return fmt.Errorf("values are %d wide, the hidden state %d: want no wider ones in a layer that hands on the anchor", r.KVHeads*r.HeadDim, target.Hidden)
	}
	return nil
}

// warm makes layer i begin as block from[i] of the target, which checkFrom has passed. Its texts
// are examples of what the head will read.
func (h *Head) warm(from []int, texts [][]int32) error {
	w := h.Begin()
	w.Fuse("fc.weight", 0.1)
	w.MeanNorm("enc.output_norm.weight", train.BlocksOf(from))
	w.Copy("output_norm.weight", "output_norm.weight")
	for layer, b := range from {
		if b != train.Hand {
			w.Block(layer, b)
		}
	}
	h.Pack()
	for layer, b := range from {
		if b == train.Hand {
			if err := h.handOn(w, layer, texts); err != nil {
				return err
			}
		}
	}
	h.Pack()
	return w.Err
}
