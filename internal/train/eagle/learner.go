package eagle

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// learner is an EAGLE head as a train.Learner.
type learner struct {
	train.Heads
	r    *Recipe
	head *Head
}

// Open returns the head in its initial state, and generates texts that do not exist yet.
func (r *Recipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	return r.OpenAs(ctx, j, text, func(c eagle.Config) headfile.Shape { return &c })
}

// OpenAs is Open for a head whose files have the shape of another kind of head.
func (r *Recipe) OpenAs(ctx context.Context, j *train.Job, text *train.Corpus,
	as func(eagle.Config) headfile.Shape) (train.HeadTrainer, error) {
	l := &learner{r: r}
	var warm func() error
	switch {
	case r.Start != "":
		warm = func() error { return Start(&l.head.OverTarget, l.head.Config(), r.tokens, r.Start) }
	case len(r.From) > 0:
		warm = func() error { return Warm(ctx, &l.head.OverTarget, l.head.net, r.From, r.Seed, l.Sample(128)) }
	}
	return l, l.Open(ctx, j, r, text, func() (m train.Made, err error) {
		tokens := r.tokens
		if r.Start == "" {
			tokens = l.FrequentTokens(r.DraftVocab, text)
		}
		kind := train.KindOf(r.Precision)
		if l.head, err = NewHead(r.config(&j.Target.Config), tokens, r.OwnOutput, j.Target, kind); err != nil {
			return m, err
		}
		return train.Made{Over: &l.head.OverTarget, Shape: as(*l.head.Config()), Output: &l.head.net.Head,
			Tokens: tokens}, nil
	}, warm)
}

// goal weighs an example's test steps: the loss is the mean of the steps' means over their
// rows, weighted by Decay^step.
func (r *Recipe) goal(l *example) goal {
	o := goal{hard: 1}
	if r.Version == 2 {
		o.states, o.hard = 1, 0.1
	}
	total := 0.0
	for s := range r.TestSteps {
		if l.rows(s) > 0 {
			total += math.Pow(r.Decay, float64(s))
		}
	}
	for s := range r.TestSteps {
		w := 0.0
		if n := l.rows(s); n > 0 {
			w = math.Pow(r.Decay, float64(s)) / total / float64(n)
		}
		o.scale = append(o.scale, float32(w))
	}
	return o
}

// Gradient adds the gradient of a step's texts.
func (l *learner) Gradient(step int) (autograd.Loss, error) {
	r := l.r
	first, texts := l.Step(step)
	all := example{texts: train.TokensOf(texts)}
	for i := range texts {
		places := texts[i].Draw(r.Seed, first+i, 0, r.TestSteps, r.Places, r.Repeats)
		all.places = append(all.places, places)
		all.later = append(all.later, spread(places, len(texts[i].Tokens)-1-r.TestSteps, r.Later))
	}
	o := r.goal(&all)
	shake := r.noise(step)
	var total autograd.Loss
	for from, to := range train.PartsOf(texts, r.MicroRows) {
		part := all.part(from, to)
		part.noise = shake
		total.Add(l.head.gradient(&part, o))
	}
	return total, nil
}

// noise returns the noise added to EAGLE-2's features, as in the authors' code. EAGLE-3 has none.
func (r *Recipe) noise(step int) func(g nn.Mat, length int) {
	if r.Version != 2 {
		return nil
	}
	random := rand.New(rand.NewPCG(r.Seed, uint64(step)))
	return func(g nn.Mat, length int) { train.AddNoise(g, length, random) }
}

// spread takes n evenly spaced places among those up to last.
func spread(places []int, last, n int) (some []int) {
	for len(places) > 0 && places[len(places)-1] > last {
		places = places[:len(places)-1]
	}
	n = min(n, len(places))
	for i := range n {
		some = append(some, places[i*len(places)/n])
	}
	return some
}
