package speculate

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/speculate/reject"
	"github.com/grovellm/grove/sample"
)

// rejection is the rule of the papers for temperatures above 0: package reject over the candidates at a node.
//
// The accepted tokens depend on how many nodes were drawn. The controller sizes trees by measured
// times, so with it the same seed gives a different text each time; without it, the same text. At
// temperature 0 every rule chooses the same token, and this one is not used.
type rejection struct {
	*reject.Sampler
	vocab int
	probs []float32
	kids  []int32
}

func newRejection(vocab int) *rejection {
	return &rejection{Sampler: reject.New(vocab), vocab: vocab, probs: make([]float32, vocab)}
}

func (r *rejection) next(s *Sequence, logits []float32, nodes []int32) (int32, error) {
	s.nextSampler().Probs(r.probs, logits, s.history)
	attempt := 0
	r.Begin(r.probs, func() float64 {
		attempt++
		return uniform(s.r.Sampling.Seed, len(s.text), attempt)
	})
	for _, node := range nodes {
		r.kids = s.tree.Children(int(node), r.kids[:0])
		if len(r.kids) == 0 {
			continue
		}
		drawn, err := r.drawn(s, node)
		if err != nil {
			return 0, err
		}
		for _, kid := range r.kids {
			x := s.tree.Token[kid]
			if drawn && r.Drawn(x) || !drawn && r.Chosen(x) {
				return x, nil
			}
		}
	}
	return r.Rest(), nil
}

// drawn loads the distribution that a node's children were drawn from. It returns false if they were not drawn.
func (r *rejection) drawn(s *Sequence, node int32) (bool, error) {
	if !s.turn.Drawn || s.request < 0 {
		return false, nil
	}
	if len(s.origin) > 0 {
		node = s.origin[node]
	}
	q := s.group.proposals[s.request].Drawn(int(node))
	if q == nil {
		return false, nil
	}
	if len(q) != r.vocab {
		return false, fmt.Errorf("speculate: the drafter's distribution at node %d has %d probabilities: want %d, the target's vocabulary",
			node, len(q), r.vocab)
	}
	r.From(q, s.form.path.Forbids()) // nodes that the grammar forbids were cut, as if never drawn
	return true, nil
}

// uniform returns a random number between 0 and 1, a function of its arguments only. It uses the
// noise's streams of tokens that do not exist: −1, −2 and so on.
func uniform(seed uint64, position, attempt int) float64 {
	return math.Exp(-math.Exp(-sample.Noise(seed, position, int32(-attempt))))
}

// drawSeed returns the seed of a drafter's own noise: its draws must be independent of the target's.
func drawSeed(seed uint64) uint64 { return seed ^ 0x6a09e667f3bcc909 }
