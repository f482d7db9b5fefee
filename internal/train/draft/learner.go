package draft

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/lm"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// learner is a draft model as a train.Learner.
type learner struct {
	train.Heads
	r     *Recipe
	draft *Draft
}

// Open makes the draft model from the recipe, and generates texts that do not exist yet.
func (r *Recipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	l := &learner{r: r}
	return l, l.Open(ctx, j, r, text, func() (m train.Made, err error) {
		if l.draft, err = New(j.Target, r.From, train.KindOf(r.Precision)); err != nil {
			return m, err
		}
		return train.Made{Over: &l.draft.OverTarget}, nil
	}, func() error {
		l.draft.begin(r.From)
		return nil
	})
}

// Title describes the training.
func (l *learner) Title(name string) string {
	return fmt.Sprintf("the draft model %s: %d parameters of %d layers", name, l.Params().Count(), len(l.r.From))
}

// Gradient is the gradient of a step's texts.
func (l *learner) Gradient(step int) (total autograd.Loss, err error) {
	r := l.r
	first, texts := l.Step(step)
	var places [][]int
	rows := 0
	for i := range texts {
		of := texts[i].Draw(r.Seed, first+i, 0, train.HeldDepth, r.Places, r.Repeats)
		places = append(places, of)
		rows += len(of)
	}
	tokens := train.TokensOf(texts)
	for from, to := range train.PartsOf(texts, r.MicroRows) {
		l.draft.Tape.Reset()
		l.draft.Tape.Attach()
		total.Add(l.draft.loss(tokens[from:to], places[from:to], r.Soft, 1/float32(rows)))
		l.draft.Tape.Backward()
	}
	return total, nil
}

// Validate measures, on every held-out source, the loss, the share of right first guesses, and τ,
// the number of tokens that a round of a chain, or of a tree, produces.
func (l *learner) Validate() (losses, figures map[string]float64, err error) {
	return l.Heads.Validate(func(t *train.HeldText, figure func(string, float64)) (autograd.Loss, error) {
		return l.draft.measure(t, l.r.Soft, figure)
	})
}

// measure makes the draft model draft after every token that the target said.
func (d *Draft) measure(t *train.HeldText, soft float32, figure func(string, float64)) (all autograd.Loss, err error) {
	d.Tape.Detach()
	target := registry.Target{Vocab: d.model.Config.Vocab, Context: d.model.Context(), Model: d.Target.Model}
	open := func(s grow.Shape) (draft.Drafter, error) { return lm.New(s, registry.Modifiers{}, d.model, target) }
	var grown train.Grown
	err = t.Each(train.HeldTexts, train.HeldTokens, train.HeldDepth, func(text []int32, places []int) error {
		all.Add(d.loss([][]int32{text}, [][]int{places}, soft, 1))
		return grown.Add(open, nn.Mat{}, 0, text, places[0], len(places))
	})
	if err == nil {
		grown.Figures(figure)
		figure("depth 01", float64(all.Correct)/float64(all.Rows))
	}
	return all, err
}

// Export writes the finished draft model, which is complete.
func (l *learner) Export(dir, name string, text *train.Corpus) error {
	c := &l.Job.Target.Config
	about := fmt.Sprintf("A draft model: layers %v of a model of architecture %s with %d layers, hidden size %d and a vocabulary of %d tokens (fingerprint %s), trained further.",
		l.r.From, c.Arch, c.Layers, c.Hidden, c.Vocab, train.FingerprintModel(l.Job.Target))
	return text.ExportModel(dir, name, about, &l.draft.model.Config, l.draft.Params)
}
