package adapt_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
)

// newLearner drafts with a random block head for the target.
func newLearner(t *testing.T, m *model.Model, seed uint64) learn.Learner {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	c := synthetic.Config[jet.Config](rng, "", m.Config, tensor.F32)
	c.Block = 5
	c.Causal = true
	c.FFN = 64
	c.Layers = 1
	n, err := jet.NewNetwork(c, synthetic.Head(&c, tensor.F32, seed), nil, &m.Network)
	if err != nil {
		t.Fatal(err)
	}
	return drafter(t, n, m)
}

func drafter(t *testing.T, n *jet.Network, m *model.Model) learn.Learner {
	t.Helper()
	d, err := jet.New(jet.Options{Tree: onepass.DDTree}, n, drafttest.As(m))
	if err != nil {
		t.Fatal(err)
	}
	return d.(learn.Learner)
}

// server decodes queries one after the other.
type server struct {
	t    *testing.T
	loop *speculate.Loop
}

func serve(t *testing.T, m *model.Model, d draft.Drafter) *server {
	t.Helper()
	loop, err := speculate.New(speculate.Model(m), d, speculate.Options{Budget: 10, Uncontrolled: true})
	if err != nil {
		t.Fatal(err)
	}
	return &server{t, loop}
}

func (s *server) query(prompt []int32, p sample.Params, tokens int) (out []int32, tau float64) {
	s.t.Helper()
	q, err := s.loop.Start(prompt, speculate.Request{Sampling: p, MaxTokens: tokens})
	if err != nil {
		s.t.Fatal(err)
	}
	defer q.Close()
	for q.Finish() == speculate.Running {
		if err := s.loop.Step(context.Background(), []*speculate.Sequence{q}); err != nil {
			s.t.Fatal(err)
		}
	}
	return slices.Clone(q.Output()), q.Stats().Tau()
}

// wild learns in every query, whatever that costs, at rates that make weights anything.
func wild() adapt.Tuning {
	w := adapt.DefaultTuning()
	w.Share = 1e9
	w.Rate = [3]float32{adapt.Head: .3, adapt.Full: .3}
	return w
}

// eager learns in every query, as well as it can.
func eager() adapt.Tuning {
	w := wild()
	w.Rate = [3]float32{adapt.Head: .01, adapt.Full: .01}
	w.Steps = [3]int{adapt.Head: 8, adapt.Full: 8}
	return w
}

func adapter(t *testing.T, d learn.Learner, o adapt.Options) *adapt.Adapter {
	t.Helper()
	a, err := adapt.New(d.Head(), drafttest.Vocab, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// traffic is one of a few prompts of a kind: text that a small head can learn by heart. The kind
// attack is of any prompts.
func traffic(rng *rand.Rand, kind int) []int32 {
	if kind != attack {
		rng = rand.New(rand.NewPCG(uint64(kind), uint64(rng.IntN(4))))
	}
	p := make([]int32, 3+rng.IntN(8))
	for i := range p {
		p[i] = rng.Int32N(drafttest.Vocab)
	}
	return p
}

const attack = -1
