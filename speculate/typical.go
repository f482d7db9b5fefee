package speculate

import (
	"fmt"
	"math"
)

// Typical is Medusa's acceptance rule above temperature 0 (arXiv 2401.10774, section 2.3.1): a node
// is accepted where its token has more than min(ε, δ·e^(−H)) of the target's distribution there, H
// being its entropy. Of all paths of such nodes the longest is taken, of equally long ones the
// likeliest.
//
// It changes what is generated. So it is for measurements: Options may name it, and requests may
// not.
const Typical = "typical"

// The numbers of Medusa's release.
const (
	typicalEpsilon = 0.09
	typicalDelta   = 0.3
)

type typical struct {
	probs []float32
	path  []int32 // nodes that are accepted and not emitted yet

	likelihood []float64 // of each node the logarithm of the probability of the path to it; −∞: it is not accepted
}

// errTypical says why a request cannot have the rule.
func errTypical(why string) error {
	return fmt.Errorf("speculate: the acceptance rule %s, which changes what is generated, %s: want %s or %s",
		Typical, why, Coupled, Rejection)
}

// plan chooses the path through the sequence's tree; logits are those of its nodes.
func (r *typical) plan(s *Sequence, logits func(node int) []float32) {
	t := s.tree
	r.likelihood = append(r.likelihood[:0], 0)
	for range t.Len() - 1 {
		r.likelihood = append(r.likelihood, math.Inf(-1))
	}
	best := 0
	var kids []int32
	for node := range t.Len() {
		if kids = t.Children(node, kids[:0]); math.IsInf(r.likelihood[node], -1) || len(kids) == 0 {
			continue
		}
		s.sampler.Probs(r.probs, logits(node), s.history)
		least := threshold(r.probs)
		for _, kid := range kids {
			p := float64(r.probs[t.Token[kid]])
			if p <= least {
				continue
			}
			r.likelihood[kid] = r.likelihood[node] + math.Log(p)
			if d := t.Depth[kid] - t.Depth[best]; d > 0 || d == 0 && r.likelihood[kid] > r.likelihood[best] {
				best = int(kid)
			}
		}
	}
	r.path = t.Path(best, r.path[:0])[1:]
}

// threshold is the probability that an accepted token has more than.
func threshold(probs []float32) float64 {
	h := 0.0
	for _, p := range probs {
		if p > 0 {
			h -= float64(p) * math.Log(float64(p)+1e-5)
		}
	}
	return min(typicalEpsilon, typicalDelta*math.Exp(-h))
}

// next is the token of the path, and after its end the target's own.
func (r *typical) next(s *Sequence, logits []float32, nodes []int32) (int32, error) {
	if len(nodes) > 0 && len(r.path) > 0 {
		token := s.tree.Token[r.path[0]]
		r.path = r.path[1:]
		return token, nil
	}
	return s.sampler.Sample(logits, len(s.text), s.history), nil
}
