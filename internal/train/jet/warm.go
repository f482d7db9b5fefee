package jet

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// A block head with random initial weights learns as slowly as any language model: its mask rows
// get all information about the anchor through attention that at first looks everywhere. But the
// target's blocks are layers of the same kind, and nearly do a head's work. With the mean of the
// taps in place of each block's own residual stream, the anchor's row, which is discarded, agrees
// with the target in nine places of ten before any training.
//
// So a head starts as the target: its layers are some of the target's blocks, with the most active
// units of their MLPs where the head's are narrower. Before them comes a layer whose attention
// passes the anchor's embedding to all rows.

// checkFrom refuses layers that cannot start as From says.
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

// warm starts layer i as block from[i] of the target; checkFrom has accepted from. The texts are
// examples of the head's input.
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
