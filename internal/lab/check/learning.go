package check

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
)

// learningHead is randomHead, one in three with the modifier +adapt where the drafter takes it.
func learningHead(rng *rand.Rand, kind *headfile.Kind) string {
	text := randomHead(rng, kind)
	if f := familyOf(text); slices.Contains(f.Modifiers, registry.AdaptModifier) && rng.IntN(3) == 0 {
		text += "+" + registry.AdaptModifier
	}
	return text
}

// learners are the heads that learn while drafters draft with them.
type learners struct {
	rng   *rand.Rand
	vocab int
	o     *opened
	all   []*adapt.Adapter
}

// learn is registry.Target.Adapt: the head learns from every sequence that ends, at rates that make
// its weights anything. A head that cannot learn stays as it is.
func (l *learners) learn(d draft.Drafter) (draft.Drafter, error) {
	head, ok := d.(learn.Learner)
	if !ok {
		return d, nil
	}
	wild := adapt.DefaultTuning()
	wild.Share = 1e9
	for i := range wild.Steps {
		wild.Steps[i], wild.Rate[i] = 1, 0.5*l.rng.Float32()
	}
	policies := []adapt.Policy{adapt.Judged, adapt.Always, adapt.Always}
	a, err := adapt.New(head.Head(), l.vocab, adapt.Options{
		Policy: policies[l.rng.IntN(len(policies))], Seed: l.rng.Uint64(), Wait: l.rng.IntN(2) == 0,
		Workers: l.o.m.Pool(), Tuning: wild,
	})
	if err != nil {
		return nil, err
	}
	l.all = append(l.all, a)
	return a.Wrap(head), nil
}

// Close ends the learning.
func (l *learners) Close() (failed error) {
	for _, a := range l.all {
		if err := a.Close(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("a drafter that learns: %w", err))
		}
	}
	return failed
}
