package speculate

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/sample"
)

// rejection is the rule of the papers for temperatures above 0: it accepts or rejects the candidates at a node one after the
// other, and what is left of the target's distribution p after a rejection decides on the next.
//
// Candidates that the drafter drew from a distribution q, without replacement, in the order drawn (recursive rejection sampling,
// arXiv 2402.14160; SpecInfer's multi-step rule with q renewed): accept x with probability min(1, p(x)/q(x)); on rejection p
// becomes norm(max(0, p − q)), and q loses x and is renormalised. Where siblings carry one token, as in two
// spliced trees, each node's candidates are tried against that node's own q: to drop the second of two draws would
// change the law.
//
// Candidates that were chosen in another way count as certain, q(x) = 1 (EAGLE's rule): accept x with probability p(x); on
// rejection p loses x and is renormalised. That is exact for any set of candidates.
//
// What is accepted depends on how many nodes were drawn. The controller sizes trees by measured times, so under it a seed gives
// another text each time; without it a seed gives the same text.
//
// With all rejected the token is drawn from what is left of p. At temperature 0 every rule chooses the same, and this one is
// not used.
type rejection struct {
	probs []float32
	p, q  []float64
	kids  []int32
}

func newRejection(vocab int) *rejection {
	return &rejection{probs: make([]float32, vocab), p: make([]float64, vocab), q: make([]float64, vocab)}
}

// noMass is a probability that is nothing but rounding.
const noMass = 1e-12

func (r *rejection) next(s *Sequence, logits []float32, nodes []int32) (int32, error) {
	s.sampler.Probs(r.probs, logits, s.history)
	mass := load(r.p, r.probs) // of p, which is not normalised
	attempt := 0
	random := func() float64 {
		attempt++
		return uniform(s.r.Sampling.Seed, len(s.text), attempt)
	}
	for _, node := range nodes {
		r.kids = s.tree.Children(int(node), r.kids[:0])
		if len(r.kids) == 0 {
			continue
		}
		drawn, left, err := r.drawn(s, node) // left: mass of q
		if err != nil {
			return 0, err
		}
		for _, kid := range r.kids {
			x := s.tree.Token[kid]
			if !drawn {
				if random()*mass < r.p[x] {
					return x, nil
				}
				r.p[x] = 0
				if mass = total(r.p); mass <= 0 { // x was certain but for rounding
					return x, nil
				}
				continue
			}
			if r.q[x] <= 0 || left <= 0 { // it cannot have been drawn
				continue
			}
			if random()*r.q[x]*mass < r.p[x]*left {
				return x, nil
			}
			rest := r.residual(mass, left)
			if rest <= noMass && r.p[x] > 0 { // p is q: x was certain but for rounding
				return x, nil
			}
			if rest > noMass {
				mass = rest
			}
			r.q[x] = 0
			left = total(r.q)
		}
	}
	return pick(r.p, random()*mass), nil
}

// drawn loads into q what the children of a node were drawn from, and its mass; false if they were chosen in another way.
func (r *rejection) drawn(s *Sequence, node int32) (bool, float64, error) {
	if !s.sampled || s.request < 0 {
		return false, 0, nil
	}
	if len(s.origin) > 0 {
		node = s.origin[node]
	}
	q := s.group.proposals[s.request].Drawn.Drawn(int(node))
	if q == nil {
		return false, 0, nil
	}
	if len(q) != len(r.q) {
		return false, 0, fmt.Errorf("speculate: the drafter's distribution at node %d has %d probabilities: want %d, the target's vocabulary", node, len(q), len(r.q))
	}
	mass := load(r.q, q)
	if m := s.form.mask; m != nil { // nodes that the grammar forbids were cut, as if never drawn
		for x := range r.q {
			if !m.Has(int32(x)) && !(s.ends(int32(x)) && s.form.place.Accepting()) {
				r.q[x] = 0
			}
		}
		mass = total(r.q)
	}
	return true, mass, nil
}

// residual makes p what is left of it after q: max(0, p − q), both taken normalised. It returns the mass of that, and leaves
// p alone if there is none.
func (r *rejection) residual(pMass, qMass float64) float64 {
	sum := 0.0
	for i, p := range r.p {
		sum += max(p/pMass-r.q[i]/qMass, 0)
	}
	if sum > noMass {
		for i, p := range r.p {
			r.p[i] = max(p/pMass-r.q[i]/qMass, 0)
		}
	}
	return sum
}

// load copies probabilities and returns their sum; what is no positive number counts as 0.
func load(dst []float64, src []float32) (sum float64) {
	for i, v := range src {
		dst[i] = 0
		if v > 0 && !math.IsInf(float64(v), 0) {
			dst[i] = float64(v)
			sum += float64(v)
		}
	}
	return sum
}

func total(p []float64) (sum float64) {
	for _, v := range p {
		sum += v
	}
	return sum
}

// pick is the token at which the sum of p passes at.
func pick(p []float64, at float64) int32 {
	last := 0
	for i, v := range p {
		if v > 0 {
			last = i
			if at -= v; at < 0 {
				break
			}
		}
	}
	return int32(last)
}

// uniform is a random number between 0 and 1, a function of its arguments alone: of the noise's
// streams it takes the numbers of tokens that there are none of, −1, −2 and so on.
func uniform(seed uint64, position, attempt int) float64 {
	return math.Exp(-math.Exp(-sample.Noise(seed, position, int32(-attempt))))
}

// drawSeed is the seed of a drafter's own noise: its draws must know nothing of the target's.
func drawSeed(seed uint64) uint64 { return seed ^ 0x6a09e667f3bcc909 }
