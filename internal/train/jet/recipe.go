package jet

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Recipe determines a block head's weights, together with the target and the text.
type Recipe struct {
	Causal bool // rows of a block see only those before them; otherwise all
	Block  int  // rows, including the anchor's
	train.Layering
	Taps []int
	// the target's blocks that the layers start from, or train.Hand; empty: random weights
	From        []int
	train.Basis // anchors are drawn where a head learns, see there

	// For the first share ShortUntil of the steps, blocks have ShortBlock rows and are
	// proportionally more numerous: the later rows build on what the first ones learn.
	ShortBlock int
	ShortUntil float64

	Anchors int // blocks per text

	Loss        string  // kl, reverse-kl or ce
	Temperature float32 // of the divergence
	Gamma       float64 // row k of a block has the weight exp(−(k−1)/Gamma); 0: equal weights
}

// NewRecipe returns the recipe of the shipped block heads, causal (JetSpec) or not (DFlash).
func NewRecipe(causal bool) Recipe {
	r := Recipe{
		Causal: causal, Block: 16,
		Layering: train.Layering{Layers: 7, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 352, RopeBase: 10000},
		Taps:     []int{1, 2, 3, 4, 5}, From: []int{train.Hand, 0, 1, 2, 3, 4, 5},
		Basis:      train.NewBasis(4, 1700),
		ShortBlock: 8, ShortUntil: 0.5, Anchors: 64,
		Loss: "kl", Temperature: 1, Gamma: 4,
	}
	r.Optimizer.MuonRate = 0.01
	return r
}

// For returns the recipe for another target: the head grows with it, and starts from its
// blocks if they are suitable.
func (r Recipe) For(m *model.Model) Recipe {
	c := &m.Config
	r.Heads = c.Heads
	r.KVHeads = c.KVHeads
	r.HeadDim = c.HeadDim
	r.FFN = c.FFN / 64 * 32
	r.RopeBase = c.Rope.Base
	r.Taps, r.From = train.Spread(1, max(1, c.Layers-1), 5),
		append([]int{train.Hand}, train.Spread(0, c.Layers-1, 6)...)
	r.Layers = len(r.From)
	if !train.HasNorms(m) || !train.CanCopy(m, true, train.BlocksOf(r.From)...) || c.KVHeads*c.HeadDim > c.Hidden {
		r.From = nil
		r.FFN = max(r.FFN, c.Hidden*3/64*32) // if the target has experts, its FFN is the width of one
	}
	return r
}

// AsPaper returns the recipe with the papers' choices in place of grove's: AdamW, blocks of one length, and random
// initial weights. A causal head learns as JetSpec's does (section 4.1), with equal weights for rows; other heads
// as DFlash's do in the published trainers: from the text's tokens, with gamma 7. The number of steps stays.
func (r Recipe) AsPaper() Recipe {
	rate := float32(3e-4)
	r.Gamma = 0
	if !r.Causal {
		rate = 6e-4
		r.Gamma = 7
		r.Loss = "ce"
	}
	r.Course = train.PaperCourse(r.Course, rate, 0.95, 0.04, true, 1)
	r.ShortUntil = 0
	r.Repeats = 1
	r.From = nil
	return r
}

// Prepare refuses a recipe that cannot be completed for the target of a job.
func (r *Recipe) Prepare(j *train.Job) error {
	target := &j.Target.Config
	if err := r.CheckBasis(r.Layering); err != nil {
		return err
	}
	switch {
	case r.Anchors < 1:
		return fmt.Errorf("texts with %d blocks each: want a positive number", r.Anchors)
	case !slices.Contains([]string{"kl", "reverse-kl", "ce"}, r.Loss):
		return fmt.Errorf("loss %q: want kl, reverse-kl or ce", r.Loss)
	case !(r.ShortUntil >= 0 && r.ShortUntil <= 1) || r.ShortUntil > 0 && (r.ShortBlock < 2 || r.ShortBlock > r.Block):
		return fmt.Errorf("blocks of %d rows for the share %g of the steps: want 2 to %d, and a share from 0 to 1",
			r.ShortBlock, r.ShortUntil, r.Block)
	case !(r.Temperature > 0):
		return fmt.Errorf("temperature %g of the divergence: want a number above 0", r.Temperature)
	case !(r.Gamma >= 0):
		return fmt.Errorf("gamma %g: want 0 (rows count alike) or more", r.Gamma)
	case r.Held.Length-r.Block <= r.Held.Prompt:
		return fmt.Errorf("blocks of %d rows: held-out texts of %d tokens have no room for one after the %d that are given", r.Block, r.Held.Length, r.Held.Prompt)
	}
	c := r.config(target, 0)
	if err := c.Validate(); err != nil {
		return err
	}
	return r.checkFrom(target)
}

func (r *Recipe) objective() objective {
	o := objective{share: 1, temperature: r.Temperature, gamma: r.Gamma}
	switch r.Loss {
	case "ce":
		o.share = 0
	case "reverse-kl":
		o.divergence = autograd.ReverseKL
	}
	return o
}

// config is the head's shape for a target.
func (r *Recipe) config(target *model.Config, mask int32) jet.Config {
	return jet.Config{Base: r.Layering.Base(target, r.Taps), Block: r.Block, Causal: r.Causal, Mask: mask}
}
