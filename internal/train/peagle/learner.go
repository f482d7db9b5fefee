package peagle

import (
	"context"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/train"
	traineagle "github.com/grovellm/grove/internal/train/eagle"
	"github.com/grovellm/grove/sample"
)

// learner is a P-EAGLE head as a train.Learner.
type learner struct {
	train.Heads
	r    *Recipe
	head *Head
}

// Open returns the head in its initial state, and generates texts that do not exist yet.
func (r *Recipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	l, mask := &learner{r: r}, train.MaskToken(text.Tok)
	var warm func() error
	switch {
	case r.Start != "":
		warm = func() error { return traineagle.Start(&l.head.OverTarget, l.head.Config(), r.tokens, r.Start) }
	case len(r.From) > 0:
		warm = func() error {
			return traineagle.Warm(ctx, &l.head.OverTarget, l.head.net.Base, r.From, r.Seed, l.Sample(128))
		}
	}
	return l, l.Open(ctx, j, r, text, func() (m train.Made, err error) {
		tokens := r.tokens
		if r.Start == "" {
			tokens = l.FrequentTokens(r.DraftVocab, text)
		}
		c, kind := r.config(&j.Target.Config, mask), train.KindOf(r.Precision)
		if l.head, err = NewHead(c, tokens, j.Target, kind); err != nil {
			return m, err
		}
		return train.Made{Over: &l.head.OverTarget, Shape: l.head.Config(), Output: &l.head.net.Base.Head,
			Tokens: tokens}, nil
	}, warm)
}

// Gradient adds the gradient of a step's texts: the loss is the mean over all rows of all groups.
func (l *learner) Gradient(step int) (autograd.Loss, error) {
	r := l.r
	first, texts := l.Step(step)
	var groups []group
	rows := 0
	for i := range texts {
		length := len(texts[i].Tokens)
		places := texts[i].Draw(r.Seed, first+i, 0, r.Depths, r.Places, r.Repeats)
		groups = append(groups, drop(r.Seed<<32+uint64(length)+1, uint64(first+i), places, r.Depths, length-2,
			r.Keep, r.KeepLeast))
		rows += groups[i].rows()
	}
	var total autograd.Loss
	tokens := train.TokensOf(texts)
	for from, to := range train.PartsOf(texts, r.MicroRows) {
		total.Add(l.head.gradient(tokens[from:to], groups[from:to], 1/float32(rows)))
	}
	return total, nil
}

// Validate measures, on each held-out source, the loss, the share of correct first guesses by
// depth, and τ: the tokens per round when verifying the head's chains or trees.
func (l *learner) Validate() (losses, figures map[string]float64, err error) {
	return l.Heads.Validate(func(t *train.HeldText, figure func(string, float64)) (autograd.Loss, error) {
		m, err := l.head.measure(t)
		if err != nil {
			return autograd.Loss{}, err
		}
		m.Figures(figure)
		return m.Loss, nil
	})
}

// measure makes the head draft after every token that the target generated.
func (h *Head) measure(t *train.HeldText) (*train.Blocks, error) {
	h.Tape.Detach()
	depths := h.net.Depths
	m, err := train.NewBlocks(depths)
	if err != nil {
		return nil, err
	}
	err = t.Each(train.HeldTexts, train.HeldTokens, depths+1, func(text []int32, places []int) error {
		whole := drop(0, 0, places, depths, len(text), 1, 1)
		x := h.forward([][]int32{text}, []group{whole})
		m.Loss.Add(h.Tape.CrossEntropy(h.output(x), &h.net.Base.Head, h.targets, 1))
		ranked := m.Rank(h.Exec, h.output(x), &h.net.Base.Head, h.net.Base.Tokens, h.net.Vocab)
		var levels [][][]sample.Candidate
		for n := range places {
			levels = append(levels, ranked[n*depths:(n+1)*depths])
		}
		m.Add(text, places[0], levels)
		return nil
	})
	return m, err
}
