package eagle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
)

// BenchmarkRound times a proposal and its commit with a random head for a small target: the cost of
// a round apart from products.
func BenchmarkRound(b *testing.B) {
	m := OpenTarget(b, 1<<20)
	dynamic, best := grow.DefaultDynamic(), grow.DefaultBestFirst()
	for _, shape := range []grow.Shape{&grow.Linear{K: 8}, &dynamic, &best} {
		for _, temperature := range []float32{0, 1} {
			b.Run(fmt.Sprintf("%T/T=%g", shape, temperature), func(b *testing.B) {
				c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(1, 1)), "eagle3", m.Config, tensor.Q8_0)
				c.DraftVocab, c.Layers = c.Vocab, 1
				n, err := eagle.NewNetwork(c, synthetic.Head(&c, tensor.Q8_0, 1), synthetic.Tokens(&c, 1), &m.Network)
				if err != nil {
					b.Fatal(err)
				}
				benchmark(b, n, newDrafter(b, n, shape, shortlist.Options{}, m), temperature)
			})
		}
	}
}

func benchmark(b *testing.B, n *eagle.Network, d draft.Drafter, temperature float32) {
	var s *Sequence
	rng := rand.New(rand.NewPCG(2, 2))
	begin := func() { // keep the text short
		if s != nil {
			s.Close()
		}
		text := make([]int32, 200)
		for i := range text {
			text[i] = rng.Int32N(Vocab)
		}
		s = Begin(b, d, draft.Options{Sampling: sample.Params{Temperature: temperature}}, 1)
		Commit(b, d, s.Prompt(text, n.Hidden, true))
	}
	nodes := 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%300 == 0 {
			b.StopTimer()
			begin()
			b.StartTimer()
		}
		q := s.Request(32, 100, nil)
		Propose(b, d, q)
		nodes += q.Tree.Len()
		Commit(b, d, s.Accept(q.Tree, min(1, q.Tree.Len()-1), rng.Int32N(Vocab), n.Hidden))
	}
	b.ReportMetric(float64(nodes)/float64(b.N), "nodes")
	s.Close()
}
