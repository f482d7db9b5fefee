package falcon

import (
	"fmt"

	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Recipe determines a Falcon head's weights, together with the target and the text.
type Recipe struct {
	Block                        int  // k: tokens that a pass predicts
	Recurrent                    bool // the LSTM goes on from row to row
	Heads, KVHeads, HeadDim, FFN int
	RopeBase                     float64
	From                         []int // the target's blocks whose MLPs the layer's starts from; empty: random weights
	train.Basis

	// The loss of a row is States·SmoothL1 of its state + Logits·(Soft·KL + (1-Soft)·cross-entropy)
	// of its logits, the divergence at Temperature.
	States, Logits, Soft, Temperature float32

	// Glancing: the number of rows that read what they have to predict, as a share of the rows
	// whose likeliest token is wrong. The share falls from the first value to the second.
	Glance [2]float64
}

// NewRecipe returns the recipe of a head for the embedded target, with the release's losses.
func NewRecipe() Recipe {
	r := Recipe{
		Block: 2, Heads: 8, KVHeads: 8, HeadDim: 32, FFN: 768, RopeBase: 10000, From: []int{5},
		Basis:  train.NewBasis(7, 1300),
		States: 1, Logits: 0.1, Soft: 0.9, Temperature: 0.95, Glance: [2]float64{0.45, 0.1},
	}
	r.Optimizer.Rate, r.Optimizer.MuonRate = 0.002, 0.005
	return r
}

// For returns the recipe for another target: the head grows with it, and starts from its
// blocks if they are suitable.
func (r Recipe) For(m *model.Model) Recipe {
	c := &m.Config
	r.HeadDim = 64
	if c.Hidden < 1024 {
		r.HeadDim = 32
	}
	r.Heads = max(1, c.Hidden/r.HeadDim) // in the authors' code the heads together are as wide as the layer
	r.KVHeads = r.Heads
	r.FFN = 3 * c.Hidden / 32 * 32
	r.RopeBase = c.Rope.Base
	r.From = []int{c.Layers - 1}
	if !train.CanCopy(m, false, c.Layers-1) {
		r.From = nil
	}
	return r
}

// AsPaper returns the recipe with the choices of Falcon's code in place of grove's: AdamW at a
// small rate, and random initial weights. Losses and glancing follow that code in both; the paper's
// glancing is --glance 0.4,0. The number of steps stays.
func (r Recipe) AsPaper() Recipe {
	r.Course = train.PaperCourse(r.Course, 3e-5, 0.95, 0.015, false, 0.5)
	r.Repeats = 1
	r.From = nil
	return r
}

// layering is the shape of the head's layer.
func (r *Recipe) layering() train.Layering {
	return train.Layering{Layers: 1, Heads: r.Heads, KVHeads: r.KVHeads, HeadDim: r.HeadDim, FFN: r.FFN,
		RopeBase: r.RopeBase}
}

// Prepare refuses a recipe that cannot be completed for the target of a job.
func (r *Recipe) Prepare(j *train.Job) error {
	target := &j.Target.Config
	if err := r.CheckBasis(r.layering()); err != nil {
		return err
	}
	switch {
	case !(r.States >= 0 && r.Logits > 0 && r.Soft >= 0 && r.Soft <= 1):
		return fmt.Errorf("weights %g of states and %g of logits, %g of these soft: want 0 or more, above 0, and a share",
			r.States, r.Logits, r.Soft)
	case !(r.Temperature > 0):
		return fmt.Errorf("temperature %g of the divergence: want a number above 0", r.Temperature)
	case !(r.Glance[0] >= 0 && r.Glance[0] <= 1 && r.Glance[1] >= 0 && r.Glance[1] <= 1):
		return fmt.Errorf("glancing of %g to %g of the wrong rows: want shares, 0 to 1", r.Glance[0], r.Glance[1])
	case r.Short.Length-r.Block-1 <= r.Short.Prompt:
		return fmt.Errorf("%d tokens a pass: texts of %d tokens have no room for them after the %d that are given",
			r.Block, r.Short.Length, r.Short.Prompt)
	case r.Held.Length-train.HeldDepth <= r.Held.Prompt:
		return fmt.Errorf("held-out texts of %d tokens have no room for %d after the %d that are given",
			r.Held.Length, train.HeldDepth, r.Held.Prompt)
	}
	c := r.config(target)
	if err := c.Validate(); err != nil {
		return err
	}
	return train.CheckBlocks(r.From, target)
}

// config is the head's shape for a target.
func (r *Recipe) config(target *model.Config) falcon.Config {
	c := falcon.Config{
		Base: r.layering().Base(target, []int{target.Layers}), Block: r.Block, Recurrent: r.Recurrent,
	}
	c.Arch = "llama"
	return c
}
