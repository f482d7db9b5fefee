package specblock

import (
	"context"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/train"
)

// learner is a SpecBlock head as a train.Learner.
type learner struct {
	train.Heads
	r      *Recipe
	head   *Head
	starts [][]start // of the current step
}

// Open returns the head in its initial state, and generates texts that do not exist yet.
func (r *Recipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	l := &learner{r: r}
	var warm func() error
	if len(r.From) > 0 {
		warm = func() error { return l.head.warm(r.From, l.Examples(), r.Slots) }
	}
	return l, l.Open(ctx, j, r, text, func() (m train.Made, err error) {
		tokens, kind := l.FrequentTokens(r.DraftVocab, text), train.KindOf(r.Precision)
		if l.head, err = NewHead(r.config(&j.Target.Config), tokens, r.OwnOutput, j.Target, kind); err != nil {
			return m, err
		}
		return train.Made{Over: &l.head.OverTarget, Shape: l.head.Config(), Output: &l.head.net.Head, Tokens: tokens}, nil
	}, warm)
}

// Export writes the finished head and its results on held-out text.
func (l *learner) Export(dir, name string, text *train.Corpus) error {
	if err := l.Heads.Export(dir, name, text); err != nil {
		return err
	}
	return l.report(dir)
}

// settled reports whether later blocks and the rank head are trained too.
func (l *learner) settled(step int) bool {
	return float64(step) >= l.r.Settle*float64(l.r.Steps)
}

// Gradient adds the gradient of a step's texts.
func (l *learner) Gradient(step int) (autograd.Loss, error) {
	r := l.r
	first, texts := l.Step(step)
	t := weighting{decay: r.Decay, everywhere: !r.ValidPrefix, onPath: r.OnPath, placeMeans: r.PlaceMeans,
		rank: l.settled(step) && r.RankWidth > 0, balance: r.Balance}
	rounds, anchors := r.Rounds, r.Anchors
	if !l.settled(step) {
		rounds, anchors = 1, anchors*rounds // the same number of rows
	}
	l.starts = l.starts[:0]
	for i := range texts {
		l.starts = append(l.starts, l.draw(first+i, &texts[i], rounds, anchors))
	}
	var total autograd.Loss
	tokens := train.TokensOf(texts)
	for from, to := range train.PartsOf(texts, r.MicroRows) {
		scale := float32(to-from) / float32(len(texts)*rounds)
		part, err := l.head.gradient(tokens[from:to], l.starts[from:to], rounds, t, scale)
		if err != nil {
			return autograd.Loss{}, err
		}
		total.Add(part)
	}
	return total, nil
}

// draw draws where blocks of a text are trained; number is the text's number.
func (l *learner) draw(number int, text *train.Conversation, rounds, anchors int) []start {
	r := l.r
	seed := r.Seed<<32 + uint64(len(text.Tokens)) + 1
	return drawCuts(seed, uint64(number), text.Draw(r.Seed, number, 0, rounds*r.Block, anchors,
		r.Repeats), rounds)
}

// drawCuts turns anchors into starts, each for this many rounds of blocks: every later block starts
// from a row of the block before it, all with the same probability (§3.3, cross-block training).
func drawCuts(seed, number uint64, anchors []int, rounds int) []start {
	r := rand.New(rand.NewPCG(seed, number))
	starts := make([]start, len(anchors))
	for i, a := range anchors {
		starts[i].at = a
		for range rounds - 1 {
			starts[i].cuts = append(starts[i].cuts, r.Float64())
		}
	}
	return starts
}
