package peagle

import (
	"cmp"
	"fmt"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
	traineagle "github.com/grovellm/grove/internal/train/eagle"
)

// Recipe determines a P-EAGLE head's weights, together with the target and the text.
type Recipe struct {
	train.Layering
	Taps       []int
	DraftVocab int // how many of the most frequent tokens; 0: all
	// the target's blocks whose MLPs the first layer's MLP starts from; empty: random weights
	From []int
	// the file of an EAGLE-3 head whose shape and weights the head starts from, in place of From; its fingerprint
	Start   string `json:"-"`
	Started string `json:",omitempty"`
	train.Basis

	Depths    int     // tokens that one pass drafts
	Masks     bool    // each mask row has its own embedding (ParallelSpec)
	Places    int     // entries per text that learn
	Keep      float64 // depth d learns at a share Keep^d of them
	KeepLeast float64 // and at least at this share

	tokens []int32 // Start's draft vocabulary
}

// NewRecipe returns the recipe of a head for the embedded target.
func NewRecipe() Recipe {
	return Recipe{
		Layering: train.Layering{Layers: 2, Heads: 8, KVHeads: 4, HeadDim: 64, FFN: 768, RopeBase: 10000},
		Taps:     []int{1, 3, 5}, From: []int{5},
		Basis:  train.NewBasis(6, 1300),
		Depths: 8, Places: 256, Keep: 0.7, KeepLeast: 0.2,
	}
}

// For returns the recipe for another target: its layers are like those of an EAGLE-3 head.
func (r Recipe) For(m *model.Model) Recipe {
	e := traineagle.NewRecipe(3).For(m)
	layers := r.Layers
	r.Layering = e.Layering()
	r.Layers = layers
	r.Taps = e.Taps
	r.From = e.From
	r.DraftVocab = e.DraftVocab
	return r
}

// AsPaper returns the recipe with the choices of P-EAGLE's code (vllm-project/speculators) in place of grove's: AdamW,
// all positions learn, random initial weights, and a draft vocabulary of 32,000 tokens. The number of steps stays.
func (r Recipe) AsPaper(m *model.Model) Recipe {
	r.Course = train.PaperCourse(r.Course, 1e-4, 0.999, 0.015, false, 0.5)
	r.Places = r.Short.Length
	r.Repeats = 1
	r.From = nil
	r.DraftVocab = train.PaperVocab(m.Config.Vocab)
	return r
}

// Check refuses a recipe that cannot be completed for a target.
func (r *Recipe) Check(target *model.Config) error {
	if err := r.CheckBasis(r.Layering); err != nil {
		return err
	}
	switch {
	case r.Places < 1:
		return fmt.Errorf("--places %d: want 1 or more", r.Places)
	case !(r.Keep > 0 && r.Keep <= 1) || !(r.KeepLeast >= 0 && r.KeepLeast <= 1):
		return fmt.Errorf("a share %g of the places, and %g at least, at the next depth: want above 0 up to 1, and 0 to 1",
			r.Keep, r.KeepLeast)
	case r.Held.Length-r.Depths-1 <= r.Held.Prompt:
		return fmt.Errorf("%d depths: held-out texts of %d tokens have no room for them after the %d that are given",
			r.Depths, r.Held.Length, r.Held.Prompt)
	case r.DraftVocab < 0 || r.DraftVocab > target.Vocab:
		return fmt.Errorf("a draft vocabulary of %d tokens: want up to %d, or 0 for all", r.DraftVocab, target.Vocab)
	}
	c := r.config(target, 0)
	if err := c.Validate(); err != nil {
		return err
	}
	return train.CheckBlocks(r.From, target)
}

// Prepare gives a recipe the shape of the EAGLE-3 head that it starts from, if any, and checks it.
func (r *Recipe) Prepare(j *train.Job) error {
	if r.Start == "" {
		return r.Check(&j.Target.Config)
	}
	h, started, err := traineagle.OpenStart(r.Start, j.Target)
	if err != nil {
		return err
	}
	r.Heads, r.KVHeads = h.Heads, h.KVHeads
	r.HeadDim, r.FFN = h.HeadDim, h.FFN
	r.RopeBase, r.Rope = h.Rope.Base, &h.Rope
	r.Taps, r.From = h.Taps, nil
	r.DraftVocab = len(h.Tokens)
	r.Started, r.tokens = started, h.Tokens
	return r.Check(&j.Target.Config)
}

// config is the head's shape for a target. Like EAGLE-3's, its attention does not
// normalise queries and keys.
func (r *Recipe) config(target *model.Config, mask int32) peagle.Config {
	base := eagle.Config{Base: r.Layering.Base(target, r.Taps), Version: 3}
	c := peagle.Config{Config: base, Depths: r.Depths, Mask: mask}
	c.DraftVocab = cmp.Or(r.DraftVocab, target.Vocab)
	if r.Masks {
		c.Masks = r.Depths - 1
	}
	c.Arch = "llama"
	return c
}
