package eagle

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// routerLearner is a router as a train.Learner.
type routerLearner struct {
	r       *RouterRecipe
	target  *model.Model
	drafts  *drafts
	routing *shortlist.Routing
	router  *Router
	source  string // fingerprint of head and target
	*train.HeadTexts

	seen draftRows            // of the current step
	held map[string]draftRows // of held-out text, by source
}

// Open opens the head, and makes the texts that are still missing.
func (r *RouterRecipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	l := &routerLearner{r: r}
	var err error
	if l.HeadTexts, err = j.OpenTexts(ctx, r.HeadText, r.Steps, r.Seed, text); err != nil {
		return nil, err
	}
	m := j.Target
	h, err := eagle.Open(registry.Head{Name: r.Head}, registry.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m})
	if err != nil {
		return nil, err
	}
	sum, err := train.FingerprintFile(r.Head)
	if err != nil {
		return nil, err
	}
	l.source = sum + train.FingerprintModel(m)
	l.target, l.drafts = m, newDrafts(m, h, r.Top, r.Output)
	return l, l.begin()
}

// Finish does nothing: a router is finished after the last step.
func (l *routerLearner) Finish(context.Context, string) error { return nil }

// Title names what is trained.
func (l *routerLearner) Title(name string) string {
	return fmt.Sprintf("the router %s of %d clusters: %d parameters", name, l.router.net.Clusters, l.router.Params.Count())
}

// begin makes the clusters and the untrained router.
func (l *routerLearner) begin() error {
	net, vocab := l.drafts.head, l.target.Config.Vocab
	var err error
	if l.routing, err = l.r.cluster(l.target, net, train.TokensOf(l.Sample(256))); err != nil {
		return err
	}
	c := shortlist.RouterConfig{Embed: net.Hidden, Hidden: net.Hidden, Width: l.r.Width,
		Clusters: len(l.routing.Clusters), Output: l.r.Output}
	if l.router, err = NewRouter(c, l.routing.Clusters, vocab, net.Embed, l.target.Pool(),
		train.KindOf(l.r.Precision)); err != nil {
		return err
	}
	for step := range 4 { // how often clusters are right
		l.see(step)
	}
	l.router.Init(l.r.Seed, &l.seen, l.r.Top)
	if !l.r.Output {
		return nil
	}
	head, err := shortlist.NewHead(&net.Head, net.Norm, net.Tokens, vocab)
	if err != nil {
		return err
	}
	return l.router.InitOutputs(head, l.routing.Clusters)
}

// see adds the drafts of a step to l.seen.
func (l *routerLearner) see(step int) {
	r := l.r
	first, texts := l.Step(step)
	for i := range texts {
		text := texts[i].Tokens
		places := texts[i].Draw(r.Seed, first+i, 0, 1, r.Places, r.Repeats)
		later := spread(places, len(text)-2, r.Later)
		draw := rand.New(rand.NewPCG(r.Seed<<32+uint64(len(text))+1, uint64(first+i)))
		l.drafts.see(text, places, later, r.DraftSteps, draw, &l.seen)
	}
}

// Params, Pack and the rest make it a Learner.
func (l *routerLearner) Params() *autograd.Params { return l.router.Params }
func (l *routerLearner) Pack()                    { l.router.Pack() }

// Fingerprint covers the recipe, the target, the head and the texts.
func (l *routerLearner) Fingerprint() string {
	of := append([]string{l.source}, l.TextFingerprints()...)
	if l.r.Clusters > 0 {
		of = append(of, "k-means of rows as they are") // they once were centred
	}
	return train.Fingerprint(l.r, of...)
}

// StepTokens is the number of tokens in a step's texts.
func (l *routerLearner) StepTokens() int { return l.r.Rows * l.TextLength() }

// Gradient adds the gradient of the drafts in a step's texts.
func (l *routerLearner) Gradient(step int) (autograd.Loss, error) {
	l.seen.reset()
	l.see(step)
	return l.router.gradient(&l.seen, l.r.Top), nil
}
