package eagle

import (
	"cmp"
	"fmt"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Recipe determines an EAGLE head's weights, together with the target and the text.
type Recipe struct {
	Version                      int // 3, 2, or eagle.Native
	Heads, KVHeads, HeadDim, FFN int
	RopeBase                     float64
	Taps                         []int
	DraftVocab                   int // how many of the most frequent tokens; 0: all
	// The output matrix is the head's own, and trained; otherwise it is the target's.
	OwnOutput bool `json:",omitempty"`
	// the target's blocks whose MLPs the layer's MLP starts from (warm.go); empty: random weights
	From []int
	// The file of an EAGLE-3 head whose shape and weights the head starts from, in place of From,
	// and the file's fingerprint. FFN may be larger than that head's; 0 means the same.
	Start   string `json:"-"`
	Started string `json:",omitempty"`
	train.Basis

	Places    int     // rows per text that learn
	TestSteps int     // of the training-time test; 1: no test
	Later     int     // how many of a text's rows continue in the test's later steps
	Decay     float64 // test step s has the weight Decay^s

	rope   *model.RopeConfig // of Start
	tokens []int32           // Start's draft vocabulary
}

// NewRecipe returns the recipe of the shipped EAGLE-3 head or, for another version, of a head of the same size.
func NewRecipe(version int) Recipe {
	r := Recipe{
		Version: version, Heads: 8, KVHeads: 4, HeadDim: 64, FFN: 768, RopeBase: 10000, Taps: []int{1, 3, 5},
		From: []int{5}, Basis: train.NewBasis(5, 1300), Places: 320, TestSteps: 7, Later: 96, Decay: 0.8,
	}
	r.Optimizer.MuonRate, r.Optimizer.Rate = 0.01, 0.004 // higher rates would undo the warm start
	if version != 3 {
		r.Taps = []int{6}
	}
	if version == 2 {
		r.TestSteps, r.Later = 1, 0
	}
	return r
}

// For returns the recipe for another target: the head grows with it, and starts from its blocks if they are suitable.
func (r Recipe) For(m *model.Model) Recipe {
	c := &m.Config
	r.Heads = 2 * max(1, c.Hidden/r.HeadDim)
	r.FFN = 3 * c.Hidden / 32 * 32
	r.RopeBase = c.Rope.Base
	r.KVHeads = r.Heads / 2
	r.Taps = train.TapsFor(c.Layers)
	r.From = []int{c.Layers - 1}
	if r.Version != 3 {
		r.Taps = []int{c.Layers}
	}
	if train.CanCopy(m, false, c.Layers-1) {
		r.FFN = max(r.FFN, c.FFN/32*32) // with fewer units its MLP could not produce the last state
	} else {
		r.From = nil
		r.Optimizer = train.DefaultOptimizer()
	}
	most := 1 << 16
	if c.Hidden < 1024 { // the output matrix is several times as large as the layer
		most = 1 << 14
	}
	if c.Vocab > most {
		r.DraftVocab = most / 2
	}
	if r.Version == 3 && c.Vocab > 1<<14 { // each test step costs a product with the output matrix
		r.TestSteps = 3
	}
	return r
}

// AsPaper returns the recipe with the choices of EAGLE-3's paper (arXiv 2503.01840) and its authors'
// code in place of grove's: AdamW, all positions learn in all test steps, random initial weights, and
// a draft vocabulary of 32,000 tokens; for EAGLE-2, EAGLE's learning rate. The number of steps stays.
func (r Recipe) AsPaper(m *model.Model) Recipe {
	rate := float32(5e-5)
	if r.Version == 2 {
		rate = 3e-5
	}
	r.Course = train.PaperCourse(r.Course, rate, 0.95, 0.015, false, 0.5)
	r.Places = r.Short.Length
	if r.Version == 3 {
		r.TestSteps, r.Later = 7, r.Places
		r.OwnOutput = true
	}
	r.Repeats = 1
	r.From = nil
	r.DraftVocab = train.PaperVocab(m.Config.Vocab)
	return r
}

// Layering is the shape of the head's layer.
func (r *Recipe) Layering() train.Layering {
	return train.Layering{Layers: 1, Heads: r.Heads, KVHeads: r.KVHeads, HeadDim: r.HeadDim, FFN: r.FFN,
		RopeBase: r.RopeBase, Rope: r.rope}
}

// Check refuses a recipe that cannot be completed for a target.
func (r *Recipe) Check(target *model.Config) error {
	if err := r.CheckBasis(r.Layering()); err != nil {
		return err
	}
	switch {
	case r.Places < 1:
		return fmt.Errorf("--places %d: want 1 or more", r.Places)
	case r.TestSteps < 1 || r.TestSteps > 1 && r.Later < 1:
		return fmt.Errorf("%d test steps, the later ones of %d rows of a text: want one step, or more and some rows", r.TestSteps, r.Later)
	case !(r.Decay > 0 && r.Decay <= 1):
		return fmt.Errorf("decay %g: want above 0 and up to 1", r.Decay)
	case r.Short.Length-1-r.TestSteps < r.Short.Prompt:
		return fmt.Errorf("%d test steps: texts of %d tokens have no room for them after the %d that are given", r.TestSteps,
			r.Short.Length, r.Short.Prompt)
	case r.Held.Length-train.HeldDepth <= r.Held.Prompt:
		return fmt.Errorf("held-out texts of %d tokens have no room for %d after the %d that are given", r.Held.Length,
			train.HeldDepth, r.Held.Prompt)
	case r.DraftVocab < 0 || r.DraftVocab > target.Vocab:
		return fmt.Errorf("a draft vocabulary of %d tokens: want up to %d, or 0 for all", r.DraftVocab, target.Vocab)
	}
	c := r.config(target)
	if err := c.Validate(); err != nil {
		return err
	}
	return train.CheckBlocks(r.From, target)
}

// config is the head's shape for a target. An EAGLE head's attention does not normalise queries and
// keys: llama.cpp's eagle3 does not support it.
func (r *Recipe) config(target *model.Config) eagle.Config {
	c := eagle.Config{Base: r.Layering().Base(target, r.Taps), Version: r.Version}
	c.DraftVocab = cmp.Or(r.DraftVocab, target.Vocab)
	if r.Version != eagle.Native {
		c.Arch = "llama"
	}
	return c
}
