package medusa

import (
	"context"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/train"
)

// learner is a set of Medusa heads as a train.Learner.
type learner struct {
	train.Heads
	r     *Recipe
	heads *Heads
}

// Open returns the head in its initial state, and generates texts that do not exist yet.
func (r *Recipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	l := &learner{r: r}
	build := func() (m train.Made, err error) {
		if l.heads, err = NewHeads(r.config(&j.Target.Config), j.Target, train.KindOf(r.Precision)); err != nil {
			return m, err
		}
		return train.Made{Over: &l.heads.OverTarget, Shape: &l.heads.net.Config, Output: &l.heads.net.Head}, nil
	}
	return l, l.Open(ctx, j, r, text, build, func() error {
		l.heads.begin(r.Seed)
		return nil
	})
}

// goal is the recipe's.
func (r *Recipe) goal() goal { return goal{r.Loss == "kl", r.Decay} }

// Gradient adds the gradient of a step's texts: the loss is the sum over heads of the mean over rows.
func (l *learner) Gradient(step int) (total autograd.Loss, err error) {
	r := l.r
	first, texts := l.Step(step)
	var places [][]int
	rows := 0
	for i := range texts {
		of := texts[i].Draw(r.Seed, first+i, 0, r.Depths+1, r.Places, r.Repeats)
		places = append(places, of)
		rows += len(of)
	}
	tokens := train.TokensOf(texts)
	for from, to := range train.PartsOf(texts, r.MicroRows) {
		l.heads.Tape.Reset()
		l.heads.Tape.Attach()
		total.Add(l.heads.gradient(tokens[from:to], places[from:to], r.goal(), 1/float32(rows)))
		l.heads.Tape.Backward()
	}
	return total, nil
}

// fitTexts is the number of texts used to fit the tree template: the first ones trained on.
const fitTexts = 48

// Finish fits the tree template to the heads' accuracies. Places where a text repeats itself are
// used as rarely as in training, since a round of decoding skips many of them.
func (l *learner) Finish(context.Context, string) error {
	var ranks [][]int
	depths := l.heads.net.Depths
	for i, c := range l.Sample(fitTexts) {
		places := c.Draw(l.r.Seed, i, 0, depths+1, len(c.Tokens), l.r.Repeats)
		places = slices.DeleteFunc(places, func(p int) bool { return p > len(c.Tokens)-1-depths })
		if len(places) > 0 {
			ranks = append(ranks, l.heads.ranks(c.Tokens, places)...)
		}
	}
	l.heads.net.Template = fitTemplate(ranks, l.r.Nodes)
	return nil
}
