package specblock

import (
	"cmp"
	"fmt"

	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Recipe determines a SpecBlock head's weights, together with the target and the text.
type Recipe struct {
	Block                                int // rows: tokens predicted per pass after each start
	Layers, Heads, KVHeads, HeadDim, FFN int
	RankWidth                            int // of the rank head; 0: none
	RopeBase                             float64
	// the layers' architecture: llama, without norms of queries and keys, as in the target; empty: qwen3
	Arch             string `json:",omitempty"`
	Taps             []int
	From             []int // the target's blocks that the layers start from; empty: random weights
	Shift, Broadcast bool  // see specblock.Config; off for comparison
	// initial size of the slots' queries: see Head.warm
	Slots      float64 `json:",omitempty"`
	RankNormed bool
	train.Basis
	Anchors int // places per text where blocks are trained

	// how many blocks are trained one after the other, including the first
	Rounds int
	Settle float64 // share of the steps that train only first blocks, Rounds times as many, and no rank head

	Decay       float64 // row k of a block has the weight Decay^k
	ValidPrefix bool    // rows after a wrong one of their block are not trained (§3.3)
	OnPath      bool    // no block starts from such rows, unlike in the paper
	Balance     float64 `json:",omitempty"` // of the rank head's buckets: 0: rows count equally; 1: buckets do

	// The paper's variants: the head's own output covers this many of the most frequent tokens
	// (A.1), or all if 0; with PlaceMeans each place in a block contributes the mean of its rows
	// (equation 6), however few are valid.
	DraftVocab int  `json:",omitempty"`
	OwnOutput  bool `json:",omitempty"` // the output matrix is the head's own, and trained; otherwise the target's
	RankFull   bool `json:",omitempty"` // see specblock.Config
	PlaceMeans bool `json:",omitempty"`

	Ranks RankFit `json:"-"` // runs after the rest, and does not affect it
}

// NewRecipe returns the recipe of the shipped SpecBlock head.
func NewRecipe() Recipe {
	r := Recipe{
		Block: 4, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 512, RankWidth: 256, RopeBase: 10000,
		Taps: []int{1, 3, 5},
		From: []int{2, 3, 4, 5}, Shift: true, Basis: train.NewBasis(5, 1600),
		Anchors: 256, Rounds: 2, Settle: 0.15, Decay: 1, ValidPrefix: true, OnPath: true, Ranks: newRankFit(),
	}
	r.Schedule = train.Plateau(0.04)
	r.ValidateEvery = 250
	r.Optimizer.MuonRate, r.Optimizer.Rate = 0.003, 0.002
	r.Rows, r.MicroRows = 2, 1 // many places of few texts: the first blocks are most of the work
	return r
}

// For returns the recipe for another target: the head grows with it, and starts from its
// blocks if they are suitable.
func (r Recipe) For(m *model.Model) Recipe {
	c := &m.Config
	r.Heads = c.Heads
	r.KVHeads = c.KVHeads
	r.HeadDim = c.HeadDim
	r.FFN = c.FFN * 3 / 4 / 64 * 64
	r.RopeBase = c.Rope.Base
	r.RankWidth = c.Hidden
	r.Taps = train.TapsFor(c.Layers)
	r.From = train.Spread(max(0, c.Layers-4), c.Layers-1, 4)
	r.Layers = len(r.From)
	if !train.HasNorms(m) {
		r.Arch = "llama"
	}
	if !train.CanCopy(m, true, r.From...) {
		r.From = nil
		r.FFN = max(r.FFN, c.Hidden*9/256*64) // if the target has experts, its FFN is the width of one
	}
	if most := 1 << 16; c.Vocab > most {
		r.DraftVocab = most / 2
	}
	return r
}

// AsPaper returns the recipe with the choices of SpecBlock's paper (arXiv 2605.07243, sections 3 and A.1)
// in place of grove's: AdamW, two layers with random weights, the prefix in every row, blocks that start
// from any row, equal weights for a block's positions, a rank head that sees the whole distribution and
// is not fitted again, and a draft vocabulary of 32,000 tokens. The number of steps stays.
func (r Recipe) AsPaper(m *model.Model) Recipe {
	r.Course = train.PaperCourse(r.Course, 5e-5, 0.999, 0.015, true, 0.5)
	r.Settle = 0.036 // 2,000 of the paper's 55,800 steps
	r.Layers, r.From = 2, nil
	r.Anchors = r.Short.Length
	r.Repeats = 1
	r.Broadcast, r.OnPath = true, false
	r.PlaceMeans, r.RankFull = true, true
	r.OwnOutput = true
	r.Ranks.Texts = 0
	r.DraftVocab = train.PaperVocab(m.Config.Vocab)
	return r
}

// layering is the shape of the head's layers.
func (r *Recipe) layering() train.Layering {
	return train.Layering{Layers: r.Layers, Heads: r.Heads, KVHeads: r.KVHeads, HeadDim: r.HeadDim, FFN: r.FFN,
		RopeBase: r.RopeBase}
}

// Prepare refuses a recipe that cannot be completed for the target of a job.
func (r *Recipe) Prepare(j *train.Job) error {
	target := &j.Target.Config
	if err := r.CheckBasis(r.layering()); err != nil {
		return err
	}
	switch {
	case r.Anchors < 1:
		return fmt.Errorf("texts with %d starts each: want a positive number", r.Anchors)
	case r.Rounds < 1:
		return fmt.Errorf("%d blocks one after the other: want 1 or more", r.Rounds)
	case !(r.Settle >= 0 && r.Settle <= 1):
		return fmt.Errorf("the head settles in the share %g of the steps: want 0 to 1", r.Settle)
	case !(r.Decay > 0 && r.Decay <= 1):
		return fmt.Errorf("decay %g: want a number above 0, at most 1 (rows count alike)", r.Decay)
	case !(r.Balance >= 0 && r.Balance <= 1):
		return fmt.Errorf("balance %g: want 0 (rows count alike) to 1 (buckets do)", r.Balance)
	case !(r.Slots >= 0 && r.Slots <= 100):
		return fmt.Errorf("slots %g: want 0 (a tenth of random weights) to 100, the size of the slots' queries over the rest", r.Slots)
	case r.Slots > 0 && len(r.From) == 0:
		return fmt.Errorf("slots %g: layers with random weights have no size to compare with; say from which layers they are copied, or leave slots out", r.Slots)
	case r.DraftVocab < 0 || r.DraftVocab > target.Vocab:
		return fmt.Errorf("a draft vocabulary of %d tokens: want up to %d, or 0 for all", r.DraftVocab, target.Vocab)
	case r.Held.Length-r.Rounds*r.Block <= r.Held.Prompt:
		return fmt.Errorf("%d blocks of %d rows: held-out texts of %d tokens have no room for them after the %d that are given", r.Rounds, r.Block,
			r.Held.Length, r.Held.Prompt)
	}
	if err := r.Ranks.check(); err != nil {
		return err
	}
	c := r.config(target)
	if err := c.Validate(); err != nil || len(r.From) == 0 {
		return err
	}
	return r.layering().CheckFrom(r.From, target)
}

// config is the head's shape for a target.
func (r *Recipe) config(target *model.Config) specblock.Config {
	base := r.layering().Base(target, r.Taps)
	base.Arch = cmp.Or(r.Arch, base.Arch)
	base.DraftVocab = r.DraftVocab
	return specblock.Config{Base: base, Block: r.Block, RankWidth: r.RankWidth, Shift: r.Shift, Broadcast: r.Broadcast,
		RankNormed: r.RankNormed, RankFull: r.RankFull}
}
