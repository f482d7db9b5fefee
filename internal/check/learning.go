package check

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/learn"
)

// learning makes one in three of the drafters with a head that can learn do so while they draft, from every sequence that ends and at rates
// that make their weights anything. done ends it.
func learning(d draft.Drafter, rng *rand.Rand, vocab int, o *opened) (_ draft.Drafter, done func() error, err error) {
	l, ok := d.(learn.Learner)
	if !ok || rng.IntN(3) > 0 {
		return d, func() error { return nil }, nil
	}
	wild := adapt.DefaultTuning()
	wild.Share = 1e9
	for i := range wild.Steps {
		wild.Steps[i], wild.Rate[i] = 1, 0.5*rng.Float32()
	}
	policies := []adapt.Policy{adapt.Judged, adapt.Always, adapt.Always}
	a, err := adapt.New(l.Head(), vocab, adapt.Options{
		Policy: policies[rng.IntN(len(policies))], Seed: rng.Uint64(), Wait: rng.IntN(2) == 0, Workers: o.m.Pool(), Tuning: wild,
	})
	if err != nil {
		return nil, nil, err
	}
	return a.Wrap(l), func() error {
		err := a.Close()
		if err != nil {
			err = fmt.Errorf("a drafter that learns: %w", err)
		}
		return err
	}, nil
}
