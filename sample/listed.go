// The race among some of the tokens: for drafters whose output head gives the logits of a shortlist alone.

package sample

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// TopOf is Top for the case that only some logits are known: logits[i] is that of tokens[i], and
// minus infinity where that is negative. No token may be listed twice. Tokens that are not listed
// are not ranked, but still have their share of the probability: outside is the logarithm of the
// sum of their exp(logit / temperature) (below temperature 1 of exp(logit)), as the caller
// estimates it; minus infinity: nothing. It makes LogProb and Score of different lists comparable.
// Top-k, top-p and min-p choose among the listed tokens, and then outside is ignored. Equal scores
// are in the order of the list.
func (s *Sampler) TopOf(dst []Candidate, logits []float32, tokens []int32, outside float64, position int,
	h *History) []Candidate {
	dst = dst[:0]
	if cap(dst) == 0 || len(logits) == 0 {
		return dst
	}
	p := &s.p
	chosen := p.narrows()
	if !chosen && len(s.bias) == 0 && (h == nil || !p.penalised()) {
		return s.topListed(dst, logits, tokens, position, outside)
	}
	if chosen {
		outside = math.Inf(-1)
	}
	all := s.spread(logits, tokens)
	s.adjust(all, h)
	if _, top := largest(all); top > negInf { // else there may be no token at all
		dst = s.top(dst, all, position, outside)
	}
	return dst
}

// spread gives the listed logits their places in the vocabulary, where no other token has a chance.
func (s *Sampler) spread(logits []float32, tokens []int32) []float32 {
	if len(s.all) != s.vocab {
		s.all = make([]float32, s.vocab)
	}
	for i := range s.all {
		s.all[i] = negInf
	}
	for i, token := range tokens {
		if uint(token) < uint(s.vocab) {
			s.all[token] = logits[i]
		}
	}
	return s.all
}

// topListed is top on logits that nothing changes: places in the list first, then tokens.
func (s *Sampler) topListed(dst []Candidate, logits []float32, tokens []int32, position int,
	outside float64) []Candidate {
	first, top := largest(logits)
	switch {
	case top == negInf: // there may be no token at all
		return dst
	case math.IsInf(float64(top), 1):
		return append(dst, Candidate{Token: tokens[first]})
	}
	if s.p.Temperature == 0 {
		list, val := s.first(logits, min(cap(dst), len(logits)))
		for i, place := range list {
			dst = append(dst, Candidate{Token: place, Score: float64(val[i])})
		}
	} else {
		dst = s.raceListed(dst, logits, tokens, stream(s.p.Seed, position))
	}
	dst = s.normalise(dst, logits, top, s.logMass(logits, top, 0), outside)
	for i := range dst {
		dst[i].Token = tokens[dst[i].Token]
	}
	return dst
}

// raceListed is raceTop where the i-th place of the logits runs with the noise of tokens[i].
func (s *Sampler) raceListed(dst []Candidate, logits []float32, tokens []int32, key uint64) []Candidate {
	list, val := s.first(logits, min(max(cap(dst), runFirst), len(logits)))
	for i, at := range list {
		dst = place(dst, at, s.score(val[i], draw(key, tokens[at])))
	}
	others := val[len(val)-1] // at most
	for lo := 0; lo < len(logits); lo += raceBlock {
		block := logits[lo:min(lo+raceBlock, len(logits))]
		_, m := largest(block)
		if !(m > negInf) {
			continue
		}
		least := uint64(0)
		most := float64(min(m, others)) * s.inv
		if len(dst) == cap(dst) {
			least = hashBound(most, dst[len(dst)-1].Score)
		}
		if least == math.MaxUint64 {
			continue
		}
		of := tokens[lo:][:len(block)]
		for i := 0; i < len(block); i++ {
			i += simd.FirstHashOf(key, of[i:], least)
			if i == len(block) {
				break
			}
			l, h := block[i], draw(key, of[i])
			if !(l > negInf) || len(dst) == cap(dst) && tooLow(float64(l)*s.inv, dst[len(dst)-1].Score, h) {
				continue
			}
			at := int32(lo + i)
			if slices.ContainsFunc(dst, func(c Candidate) bool { return c.Token == at }) {
				continue // it ran first
			}
			dst = place(dst, at, s.score(l, h))
			if len(dst) == cap(dst) {
				least = hashBound(most, dst[len(dst)-1].Score)
			}
		}
	}
	return dst
}
