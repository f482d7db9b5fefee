// The race's first places: what a drafter offers where Sample will choose.

package sample

import (
	"math"
	"math/bits"
	"slices"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// Candidate is a token that Top ranks.
type Candidate struct {
	Token int32

	// LogProb is the logarithm of the token's probability under the processed logits. At temperature 1 and above it
	// is the logarithm of what Probs gives. Below 1, where Probs becomes ever more peaked, it is that of the softmax
	// at temperature 1; at temperature 0 without top-k, top-p and min-p.
	LogProb float32

	// Score is LogProb, plus the token's noise at temperatures above 0, multiplied by the temperature if that is
	// below 1. Sample takes the token with the largest score. Scores of different positions can be compared: at
	// temperature 1 and above, the largest score of all tokens is distributed as one noise.
	Score float64
}

// Top ranks the best cap(dst) tokens by what Sample compares with the same arguments: the tokens
// with the largest logit/temperature + noise among those kept, at temperature 0 those with the
// largest logits. The first is Sample's token. It returns fewer if fewer can be drawn. Equal scores
// are ordered by id, as in Sample.
func (s *Sampler) Top(dst []Candidate, logits []float32, position int, h *History) []Candidate {
	dst = dst[:0]
	if cap(dst) == 0 {
		return dst
	}
	s.adjust(logits, h)
	dst = s.top(dst, logits, position, math.Inf(-1))
	s.restore(logits)
	return dst
}

// top is Top on adjusted logits. outside is the logarithm of the mass, the sum of exp(steep·logit),
// of tokens that take no part.
func (s *Sampler) top(dst []Candidate, logits []float32, position int, outside float64) []Candidate {
	first, l := largest(logits)
	if math.IsInf(float64(l), 0) {
		return append(dst, Candidate{Token: first})
	}
	if s.p.Temperature == 0 {
		list, val := s.first(logits, min(cap(dst), len(logits)))
		for i, token := range list {
			dst = append(dst, Candidate{Token: token, Score: float64(val[i])})
		}
		return s.normalise(dst, logits, l, s.logMass(logits, l, 0), outside)
	}
	list, cut := s.support(logits, l)
	key := stream(s.p.Seed, position)
	if list == nil {
		dst = s.raceTop(dst, logits, key, cut)
		return s.normalise(dst, logits, l, s.logMass(logits, l, cut), outside)
	}
	sum, steep := 0.0, s.steep()
	for _, i := range list {
		sum += math.Exp((float64(logits[i]) - float64(l)) * steep)
		dst = place(dst, i, s.score(logits[i], draw(key, i)))
	}
	return s.normalise(dst, logits, l, math.Log(sum), outside)
}

// normalise makes the race's scores those of candidates, less the logarithm of the mass, and fills
// in the probabilities. top is the largest logit, logMass relative to it.
func (s *Sampler) normalise(dst []Candidate, logits []float32, top float32, logMass, outside float64) []Candidate {
	inv := s.steep()
	scale := 1.0 // of the race's scores
	if t := float64(s.p.Temperature); t > 0 && t < 1 {
		scale = t
	}
	if d := outside - float64(top)*inv - logMass; d > 40 {
		logMass += d
	} else if d > -40 {
		logMass += math.Log1p(math.Exp(d))
	}
	for i := range dst {
		c := &dst[i]
		c.LogProb = min(float32((float64(logits[c.Token])-float64(top))*inv-logMass), 0) // certain at most, for all rounding
		c.Score = c.Score*scale - float64(top)*inv - logMass
	}
	return dst
}

// steep is what logits are multiplied by before the softmax of Candidate.LogProb.
func (s *Sampler) steep() float64 {
	if s.p.Temperature < 1 {
		return 1
	}
	return s.inv
}

// logMass is log Σ exp(steep·(logit − top)) over the tokens whose order key reaches cut; top is the largest logit.
func (s *Sampler) logMass(logits []float32, top float32, cut uint64) float64 {
	inv := s.steep()
	s.exp = slices.Grow(s.exp[:0], len(logits))[:len(logits)]
	w := s.exp
	if most := float64(top) * inv; cut == 0 && math.Abs(most) < 256 { // larger ones would lose the sum in rounding
		x := logits
		if inv != 1 {
			copy(w, logits)
			simd.Scale(w, float32(inv))
			x = w
		}
		if m := float64(simd.LogSumExp(x)); m == m { // there is no NaN among them
			return m - most
		}
	}
	for i, l := range logits {
		if orderKey(l, i) < cut || !(l > negInf) {
			w[i] = negInf
			continue
		}
		w[i] = (l - top) * float32(inv)
	}
	return float64(simd.LogSumExp(w))
}

// place puts a token where its score belongs among the first cap(dst), if it is one of them.
func place(dst []Candidate, token int32, score float64) []Candidate {
	n := len(dst)
	if n == cap(dst) {
		if last := &dst[n-1]; score < last.Score || score == last.Score && token > last.Token {
			return dst
		}
		n--
	} else {
		dst = dst[:n+1]
	}
	for ; n > 0 && (score > dst[n-1].Score || score == dst[n-1].Score && token < dst[n-1].Token); n-- {
		dst[n] = dst[n-1]
	}
	dst[n] = Candidate{Token: token, Score: score}
	return dst
}

// raceTop is race for the first cap(dst) places. The likeliest tokens run first: so the last place
// is hard to get from the start, and the bounds on the hashes of the others are those of less
// likely tokens.
func (s *Sampler) raceTop(dst []Candidate, logits []float32, key, cut uint64) []Candidate {
	list, val := s.first(logits, min(max(cap(dst), runFirst), len(logits)))
	for i, token := range list {
		if orderKey(val[i], int(token)) >= cut {
			dst = place(dst, token, s.score(val[i], draw(key, token)))
		}
	}
	others := val[len(val)-1] // at most
	need := func(most float64) uint64 {
		if len(dst) < cap(dst) {
			return 0
		}
		return hashBound(most, dst[len(dst)-1].Score)
	}
	for lo := 0; lo < len(logits); lo += raceBlock {
		block := logits[lo:min(lo+raceBlock, len(logits))]
		m := simd.ArgMax(block)
		if m < 0 || !(block[m] > negInf) || orderKey(block[m], lo+m) < cut {
			continue
		}
		most := float64(min(block[m], others)) * s.inv
		least := need(most)
		if least == math.MaxUint64 {
			continue
		}
		k := key + uint64(lo)*golden
		for i := 0; i < len(block); i++ {
			i += simd.FirstHash(k+uint64(i)*golden, len(block)-i, least)
			if i == len(block) {
				break
			}
			l, h := block[i], mix(k+uint64(i+1)*golden)
			if !(l > negInf) || orderKey(l, lo+i) < cut {
				continue
			}
			if n := len(dst); n == cap(dst) && tooLow(float64(l)*s.inv, dst[n-1].Score, h) {
				continue
			}
			token := int32(lo + i)
			if slices.ContainsFunc(dst, func(c Candidate) bool { return c.Token == token }) {
				continue // it ran first
			}
			dst = place(dst, token, s.score(l, h))
			least = need(most)
		}
	}
	return dst
}

// tooLow reports that a token of logit / temperature x and hash h cannot reach the score best, by a
// bound in powers of 2: it does only if 1 − u < exp(x − best), and 1 − u = (v + ½)·2⁻⁵² is at least
// 2^(bits of v − 53), v the upper 52 bits of the hash's complement. It spares most of the tokens
// that hashBound lets through their two logarithms.
func tooLow(x, best float64, h uint64) bool {
	d := x - best + 1e-6 + 1e-14*(math.Abs(x)+math.Abs(best)) // the slack covers all rounding
	return float64(bits.Len64(^h>>12)-53)*math.Ln2 > d
}

// setLike makes s choose as o does, with scratch of its own: see lower.SetLike.
func (s *Sampler) setLike(o *Sampler) {
	s.p = o.p
	s.vocab = o.vocab
	s.inv = o.inv
	s.lnMinP = o.lnMinP
	s.bias = o.bias
}
