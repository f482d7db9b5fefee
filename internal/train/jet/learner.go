package jet

import (
	"context"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/train"
)

// learner is a block head as a train.Learner.
type learner struct {
	train.Heads
	r         *Recipe
	objective objective
	head      *Head
	anchors   [][]int // of the current step
}

// Open returns the head in its initial state, and generates texts that do not exist yet.
func (r *Recipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	l, mask := &learner{r: r, objective: r.objective()}, train.MaskToken(text.Tok)
	var warm func() error
	if len(r.From) > 0 {
		warm = func() error { return l.head.warm(r.From, l.Examples()) }
	}
	return l, l.Open(ctx, j, r, text, func() (m train.Made, err error) {
		if l.head, err = NewHead(r.config(&j.Target.Config, mask), j.Target, train.KindOf(r.Precision)); err != nil {
			return m, err
		}
		return train.Made{Over: &l.head.OverTarget, Shape: l.head.Config(), Output: &l.head.net.Head}, nil
	}, warm)
}

// Open is Recipe.Open for a head with a correction.
func (r *CorrectedRecipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	l, mask := &learner{r: &r.Recipe, objective: r.objective()}, train.MaskToken(text.Tok)
	if r.start != nil {
		mask = r.start.Mask
	}
	return l, l.Open(ctx, j, r, text, func() (m train.Made, err error) {
		l.head, err = NewCorrectedHead(r.config(&j.Target.Config, mask), j.Target, train.KindOf(r.Precision), r.Weight)
		if err != nil {
			return m, err
		}
		return train.Made{Over: &l.head.OverTarget, Shape: &l.head.correction.net.Config, Output: &l.head.net.Head}, nil
	}, func() error { return l.head.begin(r, l.Examples()) })
}

// Gradient adds the gradient of a step's texts.
func (l *learner) Gradient(step int) (autograd.Loss, error) {
	r, o := l.r, l.objective
	first, texts := l.Step(step)
	block, anchors := r.Block, r.Anchors
	if float64(step) < r.ShortUntil*float64(r.Steps) {
		block, anchors = r.ShortBlock, anchors*r.Block/r.ShortBlock // the same number of rows
	}
	l.anchors = l.anchors[:0]
	weight := 0.0
	for i := range texts {
		l.anchors = append(l.anchors, texts[i].Draw(r.Seed, first+i, 0, block, anchors, r.Repeats))
		weight += o.total(l.anchors[i], block-l.head.skip, len(texts[i].Tokens))
	}
	tokens := train.TokensOf(texts)
	var total autograd.Loss
	for from, to := range train.PartsOf(texts, r.MicroRows) {
		part, err := l.head.gradient(tokens[from:to], l.anchors[from:to], block, o, float32(1/weight))
		if err != nil {
			return autograd.Loss{}, err
		}
		total.Add(part)
	}
	return total, nil
}
