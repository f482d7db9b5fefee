package medusa

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Recipe determines the weights of Medusa heads, together with the target and the text.
type Recipe struct {
	Depths, ResBlocks int
	OwnOutputs        bool // each head has an output matrix, initially the target's; otherwise they share the target's
	train.Basis

	Places int     // rows per text that learn
	Loss   string  // ce: cross-entropy of the text; kl: divergence from the target
	Decay  float64 // head i, from 0, has the weight Decay^i
	Nodes  int     // of the tree template fitted at the end
}

// NewRecipe returns Medusa-1 as its authors' code trains it (arXiv 2401.10774, section 2.2.1): the
// target is frozen, the loss is the sum of the heads' cross-entropies, and AdamW's rate is 1e-3
// after a warm-up over a tenth of the steps, then falls along a cosine. The heads use the target's
// output matrix, as text-generation-inference's do: with a small target, matrices of their own
// would be most of the weights.
func NewRecipe() Recipe {
	r := Recipe{
		Depths: 5, ResBlocks: 1, Basis: train.NewBasis(8, 1000),
		Places: 192, Loss: "ce", Decay: 1, Nodes: len(medusa.PaperTemplate),
	}
	r.Schedule = train.Schedule{Warmup: 0.1, Cooldown: 0.9, Cosine: true}
	r.Optimizer = train.Optimizer{AdamW: autograd.AdamW{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}}
	return r
}

// AsPaper returns the recipe with the choices of Medusa's paper (arXiv 2401.10774, section 2.2.1) in place of grove's:
// later heads weigh less, each head has an output matrix, and all positions learn. The number of steps stays.
func (r Recipe) AsPaper() Recipe {
	r.Decay = 0.8
	r.OwnOutputs = true
	r.Places = r.Short.Length
	r.Repeats = 1
	return r
}

// Prepare refuses a recipe that cannot be completed for the target of a job.
func (r *Recipe) Prepare(j *train.Job) error {
	target := &j.Target.Config
	if err := r.CheckBasis(train.Layering{}); err != nil {
		return err
	}
	c := r.config(target)
	if err := c.Validate(); err != nil {
		return err
	}
	switch {
	case r.Places < 1:
		return fmt.Errorf("--places %d: want 1 or more", r.Places)
	case !slices.Contains([]string{"ce", "kl"}, r.Loss):
		return fmt.Errorf("loss %q: want ce or kl", r.Loss)
	case !(r.Decay > 0 && r.Decay <= 1):
		return fmt.Errorf("decay %g: want above 0 and up to 1", r.Decay)
	case r.Nodes < 1 || r.Nodes > 1<<10:
		return fmt.Errorf("a tree template of %d nodes: want 1 to %d", r.Nodes, 1<<10)
	case r.Held.Length-r.Depths-1 <= r.Held.Prompt:
		return fmt.Errorf("%d heads: held-out texts of %d tokens have no room for a draft after the %d that are given",
			r.Depths, r.Held.Length, r.Held.Prompt)
	}
	return nil
}

// config is the heads' shape for a target.
func (r *Recipe) config(target *model.Config) medusa.Config {
	return medusa.Config{
		Base: headfile.Base{Config: model.Config{Vocab: target.Vocab, Hidden: target.Hidden}, DraftVocab: target.Vocab,
			Taps: []int{target.Layers}, TargetLayers: target.Layers}, Depths: r.Depths, ResBlocks: r.ResBlocks,
		OwnOutputs: r.OwnOutputs,
	}
}
