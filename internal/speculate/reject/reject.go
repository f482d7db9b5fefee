// Package reject is rejection sampling over the candidates of a draft tree. It accepts or rejects
// one after the other. After a rejection, the rest of the target's distribution p decides on the
// next. The resulting token is distributed as p.
//
// Candidates that the drafter drew from a distribution q, without replacement, in the order drawn
// (recursive rejection sampling, arXiv 2402.14160; SpecInfer's multi-step rule with q renewed):
// accept x with probability min(1, p(x)/q(x)); on rejection p becomes norm(max(0, p − q)), and q
// loses x and is renormalised. If siblings carry the same token, as in two spliced trees, each node's
// candidates are tried against that node's own q: dropping the second of two draws would change the
// distribution.
//
// Candidates that were not drawn count as certain, q(x) = 1 (EAGLE's rule): accept x
// with probability p(x); on rejection p loses x and is renormalised. That is exact for any set of
// candidates.
//
// If all are rejected the token is drawn from what is left of p.
//
// Typical is another rule, which changes the distribution.
package reject

import "math"

// Sampler samples one token at a time. Neither p nor q is normalised.
type Sampler struct {
	p, q, rest []float64
	mass, left float64 // of p and of q
	random     func() float64
}

// noMass is a probability that is only rounding error.
const noMass = 1e-12

// New returns a sampler for distributions over a vocabulary of that size.
func New(vocab int) *Sampler {
	return &Sampler{p: make([]float64, vocab), q: make([]float64, vocab), rest: make([]float64, vocab)}
}

// Begin takes the target's distribution, and a source of random numbers between 0 and 1.
func (s *Sampler) Begin(probs []float32, random func() float64) {
	s.mass, s.random = load(s.p, probs), random
}

// Chosen tries a candidate that was not drawn, and reports whether it is accepted.
func (s *Sampler) Chosen(x int32) bool {
	if s.random()*s.mass < s.p[x] {
		return true
	}
	s.p[x] = 0
	s.mass = total(s.p)
	return s.mass <= 0 // x was certain, apart from rounding
}

// From takes the distribution that the next candidates were drawn from. Tokens for which out returns
// true cannot have been drawn. out may be nil.
func (s *Sampler) From(q []float32, out func(x int32) bool) {
	s.left = load(s.q, q)
	if out == nil {
		return
	}
	for x := range s.q {
		if out(int32(x)) {
			s.q[x] = 0
		}
	}
	s.left = total(s.q)
}

// Drawn tries a candidate that was drawn, and reports whether it is accepted.
func (s *Sampler) Drawn(x int32) bool {
	if s.q[x] <= 0 || s.left <= 0 { // it cannot have been drawn
		return false
	}
	if s.random()*s.q[x]*s.mass < s.p[x]*s.left {
		return true
	}
	rest := s.residual()
	if rest <= noMass*s.mass && s.p[x] > 0 { // p is q: x was certain, apart from rounding
		return true
	}
	if rest > noMass*s.mass {
		s.p, s.rest = s.rest, s.p
		s.mass = rest
	}
	s.q[x] = 0
	s.left = total(s.q)
	return false
}

// Rest draws a token from what is left of p.
func (s *Sampler) Rest() int32 {
	at, last := s.random()*s.mass, 0
	for i, v := range s.p {
		if v > 0 {
			last = i
			at -= v
			if at < 0 {
				break
			}
		}
	}
	return int32(last)
}

// residual puts the rest of p after q into s.rest, max(0, p − q) with q scaled to the mass of p, and
// returns its mass.
func (s *Sampler) residual() float64 {
	scale := s.mass / s.left
	rest := s.rest[:len(s.p)]
	for i, q := range s.q[:len(s.p)] {
		rest[i] = max(s.p[i]-float64(q*scale), 0) // never fused
	}
	return total(rest)
}

// load copies probabilities and returns their sum. Anything that is not a positive number counts as 0.
func load(dst []float64, src []float32) float64 {
	for i, v := range src {
		if !(v > 0 && v <= math.MaxFloat32) {
			v = 0
		}
		dst[i] = float64(v)
	}
	return total(dst)
}

// total returns the sum of p. It keeps four partial sums, so that additions need not wait for one another.
func total(p []float64) float64 {
	var sum [4]float64
	for ; len(p) >= 4; p = p[4:] {
		sum[0] += p[0]
		sum[1] += p[1]
		sum[2] += p[2]
		sum[3] += p[3]
	}
	for _, v := range p {
		sum[0] += v
	}
	return sum[0] + sum[1] + (sum[2] + sum[3])
}
