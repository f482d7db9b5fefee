package train

import (
	"context"
	"fmt"
	"slices"

	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/internal/train/bpe"
	"github.com/grovellm/grove/nn"
)

// HeadRecipe is what a block head's weights are a function of, with the target and the text.
type HeadRecipe struct {
	Causal                               bool // rows of a block see those before them, else all
	Block                                int  // rows, the anchor's included
	Layers, Heads, KVHeads, HeadDim, FFN int
	RopeBase                             float64
	Taps                                 []int
	From                                 []int // the target's blocks that the layers begin as, or hand; empty: random weights
	Seed                                 uint64
	Precision                            string // of products: f32 or bf16
	Course

	HeadText // anchors lie where a head learns, see there

	// For the share ShortUntil of the steps blocks have ShortBlock rows, and there are as many more of them: what the first rows
	// learn the later ones build on.
	ShortBlock int
	ShortUntil float64

	Anchors int // blocks of a text

	Loss        string  // kl, reverse-kl or ce
	Temperature float32 // of the divergence
	Gamma       float64 // row k of a block counts exp(−(k−1)/Gamma); 0: all alike
}

// JetRecipe is the recipe of the shipped block heads, causal (JetSpec) or not (DFlash).
func JetRecipe(causal bool) HeadRecipe {
	r := HeadRecipe{
		Causal: causal, Block: 16, Layers: 7, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 352, RopeBase: 10000, Taps: []int{1, 2, 3, 4, 5},
		From: []int{hand, 0, 1, 2, 3, 4, 5}, Seed: 4, Precision: "bf16",
		Course:     Course{Steps: 1700, Schedule: Schedule{Warmup: 0.02, Cooldown: 0.65, Floor: 0.02}, Optimizer: DefaultOptimizer(), Clip: 1, ValidateEvery: 200},
		HeadText:   headText(),
		ShortBlock: 8, ShortUntil: 0.5, Anchors: 64,
		Loss: "kl", Temperature: 1, Gamma: 4,
	}
	r.Optimizer.MuonRate = 0.01
	return r
}

func (r *HeadRecipe) basis() basis { return basis{r.HeadText, r.Seed, r.Precision} }

func (r *HeadRecipe) layering() layering {
	return layering{r.Layers, r.Heads, r.KVHeads, r.HeadDim, r.FFN, r.RopeBase}
}

func (r *HeadRecipe) check(target *Shape) error {
	if err := r.basis().check(); err != nil {
		return err
	}
	switch {
	case r.Steps < 1 || r.Anchors < 1:
		return fmt.Errorf("%d steps of texts with %d blocks each: want positive numbers", r.Steps, r.Anchors)
	case !slices.Contains([]string{"kl", "reverse-kl", "ce"}, r.Loss):
		return fmt.Errorf("loss %q: want kl, reverse-kl or ce", r.Loss)
	case !(r.ShortUntil >= 0 && r.ShortUntil <= 1) || r.ShortUntil > 0 && (r.ShortBlock < 2 || r.ShortBlock > r.Block):
		return fmt.Errorf("blocks of %d rows for the share %g of the steps: want 2 to %d, and a share from 0 to 1", r.ShortBlock, r.ShortUntil, r.Block)
	case !(r.Temperature > 0):
		return fmt.Errorf("temperature %g of the divergence: want a number above 0", r.Temperature)
	case !(r.Gamma >= 0):
		return fmt.Errorf("gamma %g: want 0 (rows count alike) or more", r.Gamma)
	case r.Held.Length-r.Block <= r.Held.Prompt:
		return fmt.Errorf("blocks of %d rows: held-out texts of %d tokens have no room for one after the %d that are given", r.Block, r.Held.Length, r.Held.Prompt)
	}
	if err := r.layering().check(); err != nil {
		return err
	}
	c := r.config(*target, 0)
	if err := c.Validate(); err != nil {
		return err
	}
	return r.checkFrom(target)
}

func (r *HeadRecipe) objective() objective {
	o := objective{share: 1, temperature: r.Temperature, gamma: r.Gamma}
	switch r.Loss {
	case "ce":
		o.share = 0
	case "reverse-kl":
		o.divergence = nn.ReverseKL
	}
	return o
}

// config is the head's shape over a target.
func (r *HeadRecipe) config(target Shape, mask int32) jet.Config {
	return jet.Config{Config: r.layering().config(target), Block: r.Block, Causal: r.Causal, Mask: mask, Taps: r.Taps, TargetLayers: target.Layers}
}

// Jet trains a block head for the target of the job, in DIR/NAME. Text of the target's is in DIR/jet/generated, for all heads.
func Jet(ctx context.Context, j Job, name string, r HeadRecipe, target Shape) error {
	if err := r.check(&target); err != nil {
		return err
	}
	return j.teach(ctx, name, target.Vocab, r.Course, func(text *corpus) (apprentice, error) {
		mask, ok := text.tok.Find(bpe.Mask)
		if !ok {
			return nil, fmt.Errorf("%s: the vocabulary has no token %s, which stands for what a block drafts: train in another folder", j.tokenizerPath(), bpe.Mask)
		}
		return newHeadLearner(ctx, &j, &r, target, mask, text)
	})
}
