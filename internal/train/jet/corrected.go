// Recipes of DSpark and DFlash 2.

package jet

import (
	"fmt"

	"github.com/grovellm/grove/internal/autograd"
	jethead "github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/spark"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// The names in files of the heads with a correction, and of DSpark's corrections.
const (
	DSpark  = "dspark"
	DFlash2 = "dflash2"
	Vanilla = "vanilla"
	Gated   = "gated"
)

// CorrectedRecipe determines the weights of a DSpark or DFlash 2 head, together with the target and
// the text: it is the recipe of the block and that of the correction.
type CorrectedRecipe struct {
	Recipe
	Head string // DSpark or DFlash2

	// Start is the file of a DFlash head from which the block takes shape and weights. Started is its fingerprint.
	Start   string `json:"-"`
	Started string `json:",omitempty"`

	Rank   int
	Weight float32 // of the loss of the confidence head or the selector

	Anchor bool    // DSpark: the anchor's row drafts too
	Markov string  // DSpark: vanilla or gated
	Hard   float32 // DSpark: share of cross-entropy with the text; the rest is total variation

	Kernel, Group, Top int // DFlash 2: see spark.Config

	start *jethead.Network
}

// NewCorrectedRecipe returns the paper's correction for a kind of head, with grove's DFlash recipe for the block.
func NewCorrectedRecipe(head string) CorrectedRecipe {
	r := CorrectedRecipe{Recipe: NewRecipe(false), Head: head, Rank: 64, Weight: 1}
	if head == DSpark {
		r.Loss = "tv"
		r.Anchor = true
		r.Markov = Vanilla
		r.Hard = 0.1
		return r
	}
	r.Kernel, r.Group = 2, 16
	r.Top = 16
	return r
}

// For returns the recipe for another target or, if Start names a DFlash head, for that head at a tenth of the rates.
func (r CorrectedRecipe) For(m *model.Model) (CorrectedRecipe, error) {
	r.Recipe = r.Recipe.For(m)
	for r.Group > 1 && m.Config.Hidden%r.Group != 0 {
		r.Group /= 2
	}
	if r.Start == "" {
		return r, nil
	}
	n, err := jethead.Open(registry.Head{Name: r.Start}, registry.Target{Vocab: m.Config.Vocab,
		Context: m.Context(), Model: m})
	if err != nil {
		return r, err
	}
	if n.Causal || n.Window > 0 || n.DraftVocab > 0 {
		return r, fmt.Errorf("%s is no DFlash head of all of the vocabulary without windows, as which a head can start: %s", r.Start, n.Describe(false))
	}
	r.Block, r.ShortBlock = n.Block, min(r.ShortBlock, n.Block)
	r.Layers = n.Layers
	r.Heads, r.KVHeads = n.Config.Heads, n.KVHeads
	r.HeadDim, r.FFN = n.HeadDim, n.FFN
	r.RopeBase, r.Rope = n.Config.Rope.Base, &n.Config.Rope
	r.Taps, r.From = n.Taps, nil
	r.Anchor = false // a DFlash head's row drafts its own place
	// The block is trained already: it should adapt to the correction, not start over. Other rates were not measured.
	r.Optimizer.MuonRate, r.Optimizer.Rate = 0.001, 0.002
	r.ShortUntil = 0
	r.start = n
	r.Started, err = train.FingerprintFile(r.Start)
	return r, err
}

// AsPaper returns the recipe with the choices of the published trainers in place of grove's: for
// the block DFlash's course (Recipe.AsPaper); for DSpark also gamma 4 and its own loss.
func (r CorrectedRecipe) AsPaper() CorrectedRecipe {
	loss := r.Loss
	r.Recipe = r.Recipe.AsPaper()
	if r.Head == DSpark {
		r.Loss = loss
		r.Gamma = 4
	}
	return r
}

// Prepare refuses a recipe that cannot be completed for the target of a job.
func (r *CorrectedRecipe) Prepare(j *train.Job) error {
	plain := r.Recipe
	if r.Head == DSpark {
		plain.Loss = "kl" // any valid loss: DSpark's is its own
	}
	if err := plain.Prepare(j); err != nil {
		return err
	}
	switch {
	case r.Head == DSpark && (r.Markov != Vanilla && r.Markov != Gated):
		return fmt.Errorf("correction %q: want vanilla or gated", r.Markov)
	case !(r.Hard >= 0 && r.Hard < 1):
		return fmt.Errorf("share %g of cross-entropy: want 0 or more, and less than 1", r.Hard)
	case !(r.Weight >= 0):
		return fmt.Errorf("weight %g of the correction's loss: want 0 or more", r.Weight)
	}
	c := r.config(&j.Target.Config, 0)
	return c.Validate()
}

func (r *CorrectedRecipe) objective() objective {
	o := r.Recipe.objective()
	if r.Head == DSpark {
		o.share = 1 - r.Hard
		o.divergence = autograd.TotalVariation
	}
	return o
}

// config is the head's shape for a target.
func (r *CorrectedRecipe) config(target *model.Config, mask int32) spark.Config {
	c := spark.Config{Config: r.Recipe.config(target, mask), Variant: r.Head, Anchor: r.Anchor,
		Rank: r.Rank, Markov: r.Markov,
		Kernel: r.Kernel, Group: r.Group, Top: r.Top}
	if r.Head == DSpark && r.Weight > 0 {
		c.Confidence = spark.TokenConfident
	}
	return c
}
