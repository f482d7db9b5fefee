package engine_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/tensor"
)

// Requests come, and figures are asked for, while a step takes a new head of the drafter into use.
// The race detector sees the rest.
func TestPagesWhileHeadsChange(t *testing.T) {
	m := drafttest.OpenTarget(t, 64)
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(1, 1)), "eagle3", m.Config, tensor.F32)
	n := drafttest.Must(eagle.NewNetwork(c, synthetic.Head(&c, tensor.F32, 1), synthetic.Tokens(&c, 1), &m.Network))(t)
	d := drafttest.Must(eagle.New(n, &grow.Linear{K: 2}, false, nil, m.Pool(), drafttest.As(m)))(t)
	e := start(t, m, engine.Options{CacheMemory: 1})
	var all sync.WaitGroup
	all.Go(func() {
		for range 100 {
			d.(learn.Learner).Use(d.(learn.Learner).Head())
		}
	})
	for range 100 {
		r := request(4, 1)
		r.Drafter = d
		if err := e.Submit(t.Context(), r); err == nil {
			t.Fatal("a request of more memory than there is was taken")
		}
	}
	all.Wait()
}
