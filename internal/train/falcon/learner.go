package falcon

import (
	"context"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// learner is a Falcon head as a train.Learner.
type learner struct {
	train.Heads
	r    *Recipe
	head *Head
}

// Open returns the head in its initial state, and generates texts that do not exist yet.
func (r *Recipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	l := &learner{r: r}
	return l, l.Open(ctx, j, r, text, func() (m train.Made, err error) {
		if l.head, err = NewHead(r.config(&j.Target.Config), j.Target, train.KindOf(r.Precision)); err != nil {
			return m, err
		}
		return train.Made{Over: &l.head.OverTarget, Shape: l.head.Config(), Output: &l.head.net.Head}, nil
	}, func() error { return l.head.warm(r.From, l.Sample(32)) })
}

// Gradient adds the gradient of a step's texts.
func (l *learner) Gradient(step int) (autograd.Loss, error) {
	r := l.r
	first, list := l.Step(step)
	random := rand.New(rand.NewPCG(r.Seed, uint64(step)))
	all, rows := texts{list: train.TokensOf(list)}, 0
	for i := range list {
		places := list[i].Draw(r.Seed, first+i, r.Block, r.Block, len(list[i].Tokens), r.Repeats)
		all.places = append(all.places, places)
		rows += len(places)
	}
	share := r.Glance[1] + (r.Glance[0]-r.Glance[1])*(1-float64(step)/float64(r.Steps))
	var total autograd.Loss
	for from, to := range train.PartsOf(list, r.MicroRows) {
		shake := func(g nn.Mat) { train.AddNoise(g, len(all.list[from]), random) }
		part := texts{list: all.list[from:to], places: all.places[from:to], noise: shake}
		total.Add(l.head.gradient(&part, r.objective(), share, 1/float32(rows), random))
	}
	return total, nil
}

func (r *Recipe) objective() objective {
	return objective{states: r.States, logits: r.Logits, soft: r.Soft, temperature: r.Temperature}
}
