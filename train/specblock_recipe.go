package train

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// SpecBlockRecipe is what a SpecBlock head's weights are a function of, with the target and the text.
type SpecBlockRecipe struct {
	Block                                int // rows: the tokens that a pass says after each start
	Layers, Heads, KVHeads, HeadDim, FFN int
	RankWidth                            int // of the rank head; 0: none
	RopeBase                             float64
	Taps                                 []int
	From                                 []int // the target's blocks that the layers begin as; empty: random weights
	Shift, Broadcast                     bool  // see specblock.Config; off for comparison
	RankNormed                           bool
	Seed                                 uint64
	Precision                            string // of products: f32 or bf16
	Course

	HeadText
	Anchors int // of a text: places where blocks are taught

	Rounds int     // blocks that are taught one after the other, the first included, and the rank head with them, once the trunk has
	Settle float64 // settled, after this share of the steps: until then first blocks alone, as many more of them

	Decay       float64 // row k of a block counts Decay^k
	ValidPrefix bool    // rows after a wrong one of their block are not taught (§3.3)
	OnPath      bool    // and no block starts from them, unlike the paper's
	Balance     float64 `json:",omitempty"` // of the rank head's buckets: 0: rows count alike; 1: buckets do
}

// NewSpecBlockRecipe is the recipe of the shipped SpecBlock head.
func NewSpecBlockRecipe() SpecBlockRecipe {
	r := SpecBlockRecipe{
		Block: 4, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 512, RankWidth: 256, RopeBase: 10000, Taps: []int{1, 3, 5},
		From: []int{2, 3, 4, 5}, Shift: true, Broadcast: true, Seed: 5, Precision: "bf16",
		Course:   Course{Steps: 1000, Schedule: Schedule{Warmup: 0.04, Cooldown: 0.65, Floor: 0.02}, Optimizer: DefaultOptimizer(), Clip: 1, ValidateEvery: 250},
		HeadText: headText(), Anchors: 256, Rounds: 2, Settle: 0.15, Decay: 1, ValidPrefix: true, OnPath: true,
	}
	r.Optimizer.MuonRate, r.Optimizer.Rate = 0.003, 0.002
	r.Rows, r.MicroRows = 2, 1 // many places of few texts: most of the work is the trunks'
	return r
}

func (r *SpecBlockRecipe) check(target *Shape) error {
	if err := r.HeadText.check(); err != nil {
		return err
	}
	switch {
	case r.Precision != "f32" && r.Precision != "bf16":
		return fmt.Errorf("precision %q: want f32 or bf16", r.Precision)
	case r.Steps < 1 || r.Anchors < 1:
		return fmt.Errorf("%d steps of texts with %d starts each: want positive numbers", r.Steps, r.Anchors)
	case r.Rounds < 1:
		return fmt.Errorf("%d blocks one after the other: want 1 or more", r.Rounds)
	case !(r.Settle >= 0 && r.Settle <= 1):
		return fmt.Errorf("the trunk settles in the share %g of the steps: want 0 to 1", r.Settle)
	case !(r.Decay > 0 && r.Decay <= 1):
		return fmt.Errorf("decay %g: want a number above 0, at most 1 (rows count alike)", r.Decay)
	case !(r.Balance >= 0 && r.Balance <= 1):
		return fmt.Errorf("balance %g: want 0 (rows count alike) to 1 (buckets do)", r.Balance)
	case r.Held.Length-r.Rounds*r.Block <= r.Held.Prompt:
		return fmt.Errorf("%d blocks of %d rows: held-out texts of %d tokens have no room for them after the %d that are given", r.Rounds, r.Block, r.Held.Length, r.Held.Prompt)
	}
	for _, n := range []int{r.FFN, r.Heads * r.HeadDim} {
		if _, err := tensor.Q8_0.Size(n); err != nil { // as which the head is exported
			return fmt.Errorf("MLPs of width %d, %d heads of %d: %w", r.FFN, r.Heads, r.HeadDim, err)
		}
	}
	c := r.config(*target)
	if err := c.Validate(); err != nil {
		return err
	}
	return r.checkFrom(target)
}

// checkFrom refuses layers that cannot begin as From has it.
func (r *SpecBlockRecipe) checkFrom(target *Shape) error {
	if len(r.From) == 0 {
		return nil
	}
	if len(r.From) != r.Layers {
		return fmt.Errorf("%d layers begin as the target's blocks %v: want as many of each, or random weights", r.Layers, r.From)
	}
	for _, b := range r.From {
		if b < 0 || b >= target.Layers {
			return fmt.Errorf("the target has no block %d: want 0 to %d", b, target.Layers-1)
		}
	}
	switch {
	case r.Heads != target.Heads || r.KVHeads != target.KVHeads || r.HeadDim != target.HeadDim:
		return fmt.Errorf("layers have %d heads and %d key/value heads of %d, the target's blocks, as which they begin, %d and %d of %d: want attention of the target's shape, or random weights",
			r.Heads, r.KVHeads, r.HeadDim, target.Heads, target.KVHeads, target.HeadDim)
	case r.FFN > target.FFN:
		return fmt.Errorf("the head's MLPs are %d wide, the target's, as which they begin, %d: want no wider ones, or random weights", r.FFN, target.FFN)
	}
	return nil
}

// config is the head's shape over a target.
func (r *SpecBlockRecipe) config(target Shape) specblock.Config {
	c := specblock.Config{Config: target.config(), Block: r.Block, RankWidth: r.RankWidth, Shift: r.Shift, Broadcast: r.Broadcast,
		RankNormed: r.RankNormed, Taps: r.Taps, TargetLayers: target.Layers}
	c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Tied = r.Layers, r.Heads, r.KVHeads, r.HeadDim, r.FFN, false
	c.Rope = model.RopeConfig{Base: r.RopeBase, Dims: r.HeadDim, Scale: 1}
	return c
}

// TrainSpecBlock trains a SpecBlock head for the target of the job, in DIR/NAME, and measures it. Text of the target's is in
// DIR/jet/generated, for all heads.
func TrainSpecBlock(ctx context.Context, j Job, name string, r SpecBlockRecipe, target Shape) error {
	if err := r.check(&target); err != nil {
		return err
	}
	text, err := j.open(ctx, target.Vocab)
	if err != nil {
		return err
	}
	defer text.Close()
	l, err := newSpecBlockLearner(ctx, &j, &r, target, text)
	if err != nil {
		return err
	}
	defer l.pool.Close()
	j.note("training the head %s: %d parameters", name, l.head.Params.Count())
	loop := Loop{Course: r.Course, Dir: filepath.Join(j.Dir, name), Pool: l.pool, SaveEvery: j.saveEvery(), Report: j.Report}
	if err := loop.Run(ctx, l); err != nil {
		return err
	}
	if err := l.head.export(loop.Dir, "grove "+name, text); err != nil {
		return err
	}
	return l.report(&j, loop.Dir)
}
