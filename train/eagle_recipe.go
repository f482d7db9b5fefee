package train

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// EagleRecipe is what an EAGLE head's weights are a function of, with the target and the text.
type EagleRecipe struct {
	Version                      int // 3, or 2
	Heads, KVHeads, HeadDim, FFN int
	RopeBase                     float64
	Taps                         []int
	DraftVocab                   int   // so many of the most frequent tokens; 0: all
	From                         []int // the target's blocks as whose MLPs the layer's begins (eagle_warm.go); empty: random weights
	Seed                         uint64
	Precision                    string // of products: f32 or bf16
	Course
	HeadText

	Places    int     // rows of a text that learn
	TestSteps int     // of the training-time test; 1: none
	Later     int     // of the rows of a text, those that go on in the test's later steps
	Decay     float64 // test step s counts Decay^s
}

// NewEagleRecipe is the recipe of the shipped head, EAGLE-3; of version 2 that of an EAGLE-2 head of the same size.
func NewEagleRecipe(version int) EagleRecipe {
	r := EagleRecipe{
		Version: version, Heads: 8, KVHeads: 4, HeadDim: 64, FFN: 768, RopeBase: 10000, Taps: []int{1, 3, 5}, From: []int{5}, Seed: 5, Precision: "bf16",
		Course:   Course{Steps: 1300, Schedule: Schedule{Warmup: 0.02, Cooldown: 0.65, Floor: 0.02}, Optimizer: DefaultOptimizer(), Clip: 1, ValidateEvery: 200},
		HeadText: headText(),
		Places:   320, TestSteps: 7, Later: 96, Decay: 0.8,
	}
	if version == 2 {
		r.Taps, r.TestSteps, r.Later = []int{6}, 1, 0
	}
	return r
}

func (r *EagleRecipe) check(target *Shape) error {
	if err := r.HeadText.check(); err != nil {
		return err
	}
	switch {
	case r.Precision != "f32" && r.Precision != "bf16":
		return fmt.Errorf("precision %q: want f32 or bf16", r.Precision)
	case r.Steps < 1 || r.Places < 1:
		return fmt.Errorf("%d steps of texts with %d rows each that learn: want positive numbers", r.Steps, r.Places)
	case r.TestSteps < 1 || r.TestSteps > 1 && r.Later < 1:
		return fmt.Errorf("%d test steps, the later ones of %d rows of a text: want one step, or more and some rows", r.TestSteps, r.Later)
	case !(r.Decay > 0 && r.Decay <= 1):
		return fmt.Errorf("decay %g: want above 0 and up to 1", r.Decay)
	case r.Short.Length-1-r.TestSteps < r.Short.Prompt:
		return fmt.Errorf("%d test steps: texts of %d tokens have no room for them after the %d that are given", r.TestSteps, r.Short.Length, r.Short.Prompt)
	case r.Held.Length-heldDepth <= r.Held.Prompt:
		return fmt.Errorf("held-out texts of %d tokens have no room for %d after the %d that are given", r.Held.Length, heldDepth, r.Held.Prompt)
	case r.DraftVocab < 0 || r.DraftVocab > target.Vocab:
		return fmt.Errorf("a draft vocabulary of %d tokens: want up to %d, or 0 for all", r.DraftVocab, target.Vocab)
	}
	for _, n := range []int{r.FFN, r.Heads * r.HeadDim} {
		if _, err := tensor.Q8_0.Size(n); err != nil { // as which the head is exported
			return fmt.Errorf("MLP of width %d, %d heads of %d: %w", r.FFN, r.Heads, r.HeadDim, err)
		}
	}
	c := r.config(*target)
	if err := c.Validate(); err != nil {
		return err
	}
	return r.checkFrom(target)
}

// config is the head's shape over a target. Its attention has no norms of queries and keys: llama.cpp's eagle3 knows none.
func (r *EagleRecipe) config(target Shape) eagle.Config {
	c := eagle.Config{Config: target.config(), Version: r.Version, Taps: r.Taps, DraftVocab: target.Vocab, TargetLayers: target.Layers}
	if r.DraftVocab > 0 {
		c.DraftVocab = r.DraftVocab
	}
	c.Arch, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Tied = "llama", 1, r.Heads, r.KVHeads, r.HeadDim, r.FFN, false
	c.Rope = model.RopeConfig{Base: r.RopeBase, Dims: r.HeadDim, Scale: 1}
	return c
}

// Eagle trains an EAGLE head for the target of the job, in DIR/NAME, on text that is in DIR/jet/generated for all heads.
func Eagle(ctx context.Context, j Job, name string, r EagleRecipe, target Shape) error {
	if err := r.check(&target); err != nil {
		return err
	}
	text, err := j.open(ctx, target.Vocab)
	if err != nil {
		return err
	}
	defer text.Close()
	l, err := newEagleLearner(ctx, &j, &r, target, text)
	if err != nil {
		return err
	}
	defer l.pool.Close()
	j.note("training the head %s: %d parameters", name, l.head.Params.Count())
	loop := Loop{Course: r.Course, Dir: filepath.Join(j.Dir, name), Pool: l.pool, SaveEvery: j.saveEvery(), Report: j.Report}
	if err := loop.Run(ctx, l); err != nil {
		return err
	}
	return l.head.export(loop.Dir, "grove "+name, l.tokens, text)
}
