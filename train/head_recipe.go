package train

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/train/bpe"
)

// HeadRecipe is what a block head's weights are a function of, with the target and the text.
type HeadRecipe struct {
	Causal                               bool // rows of a block see those before them, else all
	Block                                int  // rows, the anchor's included
	Layers, Heads, KVHeads, HeadDim, FFN int
	RopeBase                             float64
	Taps                                 []int
	Seed                                 uint64
	Precision                            string // of products: f32 or bf16
	Course

	// Text is what the head learns from: "generated", what the target goes on to say after beginnings of the training text
	// (anchors lie in what it said), or "corpus", the training text as it is.
	Text      string
	Short     Generated
	Long      Generated // of twice the length; every LongEvery-th step takes half as many of these. 0 files: none
	LongEvery int

	Rows      int // texts of a step
	MicroRows int // texts whose activations live at a time; divides Rows, and Rows/2 where there are long ones
	Anchors   int // blocks of a text

	Loss        string  // kl, reverse-kl or ce
	Temperature float32 // of the divergence
	Gamma       float64 // row k of a block counts exp(−(k−1)/Gamma); 0: all alike

	Held Generated // held-out text of each validation source, for measures on the way
}

// HeadTexts and HeadLosses are the values of a recipe's Text and Loss.
var (
	HeadTexts  = []string{"generated", "corpus"}
	HeadLosses = []string{"kl", "reverse-kl", "ce"}
)

// JetRecipe is the recipe of the shipped block heads, causal (JetSpec) or not (DFlash).
func JetRecipe(causal bool) HeadRecipe {
	r := HeadRecipe{
		Causal: causal, Block: 16, Layers: 10, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 160, RopeBase: 1e6, Taps: []int{1, 2, 3, 4, 5},
		Seed: 4, Precision: "bf16",
		Course: Course{Steps: 1200, Schedule: Schedule{Warmup: 0.02, Cooldown: 0.65, Floor: 0.02}, Optimizer: DefaultOptimizer(), Clip: 1, ValidateEvery: 100},
		Text:   "generated",
		Short:  Generated{Files: 28, Texts: 512, Prompt: 192, Length: 512, Greedy: 0.5},
		Long:   Generated{Files: 3, Texts: 512, Prompt: 704, Length: 1024, Greedy: 0.5}, LongEvery: 8,
		Rows: 8, MicroRows: 4, Anchors: 64,
		Loss: "kl", Temperature: 1,
		Held: Generated{Files: 1, Texts: 64, Prompt: 192, Length: 512, Greedy: 1},
	}
	return r
}

func (r *HeadRecipe) check() error {
	switch {
	case r.Precision != "f32" && r.Precision != "bf16":
		return fmt.Errorf("precision %q: want f32 or bf16", r.Precision)
	case r.Steps < 1 || r.Rows < 1 || r.Anchors < 1:
		return fmt.Errorf("%d steps of %d texts with %d anchors: want positive numbers", r.Steps, r.Rows, r.Anchors)
	case r.MicroRows < 1 || r.Rows%r.MicroRows != 0:
		return fmt.Errorf("%d texts in parts of %d: want a divisor", r.Rows, r.MicroRows)
	case r.long() && (r.LongEvery < 2 || r.Rows/2%r.MicroRows != 0 || r.Long.Length != 2*r.Short.Length):
		return fmt.Errorf("texts of %d tokens in every %d-th step, %d of them in parts of %d: want texts of twice the length of the others, in steps in between, and a divisor",
			r.Long.Length, r.LongEvery, r.Rows/2, r.MicroRows)
	case !slices.Contains(HeadTexts, r.Text):
		return fmt.Errorf("text %q: want generated or corpus", r.Text)
	case !slices.Contains(HeadLosses, r.Loss):
		return fmt.Errorf("loss %q: want kl, reverse-kl or ce", r.Loss)
	case !(r.Temperature > 0):
		return fmt.Errorf("temperature %g of the divergence: want a number above 0", r.Temperature)
	case !(r.Gamma >= 0):
		return fmt.Errorf("gamma %g: want 0 (rows count alike) or more", r.Gamma)
	case r.Short.Prompt < 2 || r.Short.Length < r.Short.Prompt+2:
		return fmt.Errorf("texts of %d tokens, %d of them given: want 2 given or more, and 2 more after them", r.Short.Length, r.Short.Prompt)
	}
	return nil
}

func (r *HeadRecipe) long() bool { return r.Long.Files > 0 }

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
	c := jet.Config{Config: target.config(), Block: r.Block, Causal: r.Causal, Mask: mask, Taps: r.Taps, TargetLayers: target.Layers}
	c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Tied = r.Layers, r.Heads, r.KVHeads, r.HeadDim, r.FFN, false
	c.Rope = model.RopeConfig{Base: r.RopeBase, Dims: r.HeadDim, Scale: 1}
	return c
}

// Jet trains a block head for the target of the job, in DIR/NAME. Text of the target's is in DIR/jet/generated, for all heads.
func Jet(ctx context.Context, j Job, name string, r HeadRecipe, target Shape) error {
	if err := r.check(); err != nil {
		return err
	}
	text, err := j.open(ctx, target.Vocab)
	if err != nil {
		return err
	}
	defer text.Close()
	mask, ok := text.tok.Find(bpe.Mask)
	if !ok {
		return fmt.Errorf("%s: the vocabulary has no token %s, which stands for what a block drafts: train in another folder", j.tokenizerPath(), bpe.Mask)
	}
	l, err := newHeadLearner(ctx, &j, &r, target, mask, text)
	if err != nil {
		return err
	}
	defer l.pool.Close()
	j.note("training the head %s: %d parameters", name, l.head.Params.Count())
	loop := Loop{Course: r.Course, Dir: filepath.Join(j.Dir, name), Pool: l.pool, SaveEvery: j.saveEvery(), Report: j.Report}
	if err := loop.Run(ctx, l); err != nil {
		return err
	}
	return l.head.export(loop.Dir, "grove "+name, text)
}
