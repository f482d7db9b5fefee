// The sampler: processors, then the race of logits with noise.

package sample

import (
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// Sampler chooses tokens under one Params. Its scratch is reused; one goroutine uses it at a time.
type Sampler struct {
	p      Params
	vocab  int
	inv    float64 // 1 / temperature
	lnMinP float32
	bias   []change
	undo   []change // logits changed by penalties and bias, with their old values

	idx   []int32 // the list of kept tokens, when it is short
	val   []float32
	exp   []float32 // exp((logit − largest) / temperature)
	all   []float32 // listed logits in their places
	items []item
	hist  [1 << 11]uint64
}

type change struct {
	token int32
	value float32
}

// New returns a sampler for a vocabulary of vocab tokens.
func New(p Params, vocab int) (*Sampler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if vocab < 1 {
		return nil, fmt.Errorf("sample: a vocabulary of %d tokens: want at least 1", vocab)
	}
	s := &Sampler{p: p, vocab: vocab}
	if p.Temperature > 0 {
		s.inv = 1 / float64(p.Temperature)
	}
	if p.MinP > 0 {
		s.lnMinP = float32(ln(float64(p.MinP)))
	}
	for token, b := range p.LogitBias {
		if int(token) >= vocab {
			return nil, rangef("LogitBias", "token %d: want 0 to %d, the vocabulary's last", token, vocab-1)
		}
		s.bias = append(s.bias, change{token, b})
	}
	slices.SortFunc(s.bias, func(a, b change) int { return int(a.token) - int(b.token) })
	return s, nil
}

// Params returns the options that s was made with.
func (s *Sampler) Params() Params { return s.p }

// Sample chooses the token at an absolute position (the number of tokens before it) from the logits that
// the model gives there. h holds the text before the position; it may be nil where NewHistory is. logits
// has an entry for each token of the vocabulary; Sample changes it and restores it.
func (s *Sampler) Sample(logits []float32, position int, h *History) int32 {
	s.adjust(logits, h)
	token := s.choose(logits, position)
	s.restore(logits)
	return token
}

func (s *Sampler) choose(logits []float32, position int) int32 {
	top, l := largest(logits)
	if s.p.Temperature == 0 || math.IsInf(float64(l), 0) {
		return top
	}
	list, cut := s.support(logits, l)
	key := stream(s.p.Seed, position)
	if list == nil {
		return s.race(logits, key, cut)
	}
	best, win := math.Inf(-1), top
	for _, i := range list {
		if v := s.score(logits[i], draw(key, i)); v > best || v == best && i < win {
			best, win = v, i
		}
	}
	return win
}

// largest is the first token in the order of logits, with its logit; minus infinity when there is no larger one.
func largest(logits []float32) (int32, float32) {
	i := simd.ArgMax(logits)
	if i < 0 || !(logits[i] > negInf) {
		return 0, negInf
	}
	return int32(i), logits[i]
}

var negInf = float32(math.Inf(-1))

// score is what the race compares: logit / temperature + noise.
func (s *Sampler) score(l float32, h uint64) float64 {
	return float64(float64(l)*s.inv) + gumbel(h)
}

// adjust applies penalties and bias, and notes the old logits.
func (s *Sampler) adjust(logits []float32, h *History) {
	s.undo = s.undo[:0]
	if h != nil && s.p.penalised() {
		for at, token := range h.tokens {
			if h.counts[at] == 0 || uint(token) >= uint(len(logits)) {
				continue
			}
			l := logits[token]
			s.undo = append(s.undo, change{token, l})
			if r := s.p.RepetitionPenalty; r != 0 {
				if l > 0 {
					l /= r
				} else {
					l *= r
				}
			}
			if late := h.late[at]; late > 0 {
				l -= s.p.PresencePenalty
				l -= float32(s.p.FrequencyPenalty * float32(late))
			}
			logits[token] = l
		}
	}
	for _, b := range s.bias {
		if int(b.token) < len(logits) {
			s.undo = append(s.undo, change{b.token, logits[b.token]})
			logits[b.token] += b.value
		}
	}
}

func (s *Sampler) restore(logits []float32) {
	for i := len(s.undo) - 1; i >= 0; i-- {
		logits[s.undo[i].token] = s.undo[i].value
	}
}

// raceBlock is how many tokens share one bound on the noise they would need, and runFirst how many of the likeliest run
// before all others.
const (
	raceBlock = 256
	runFirst  = 32
)

// race finds the largest score among the tokens whose order key reaches cut.
//
// Token i beats the best score b so far only if −ln(−ln u) > b − s, s its logit / temperature: −ln u < exp(s − b).
// As 1 − u ≤ −ln u, that needs 1 − u < exp(s' − b) for any s' ≥ s. So a block of tokens is
// bounded by its largest logit, the bound becomes a bound on the hash itself, and all but a few
// tokens cost a hash and a comparison, many at a time. The likeliest tokens run first: so the best score is high from
// the start, and no other token's bound is above the least of theirs.
func (s *Sampler) race(logits []float32, key uint64, cut uint64) int32 {
	win, best := int32(-1), math.Inf(-1)
	list, val := s.first(logits, min(runFirst, len(logits)))
	for n, i := range list {
		if orderKey(val[n], int(i)) < cut {
			continue
		}
		if v := s.score(val[n], draw(key, i)); v > best || v == best && i < win {
			best, win = v, i
		}
	}
	others := val[len(val)-1] // at most
	for lo := 0; lo < len(logits); lo += raceBlock {
		block := logits[lo:min(lo+raceBlock, len(logits))]
		m := simd.ArgMax(block)
		if m < 0 || !(block[m] > negInf) || orderKey(block[m], lo+m) < cut {
			continue
		}
		most := float64(min(block[m], others)) * s.inv
		need := hashBound(most, best)
		if need == math.MaxUint64 {
			continue
		}
		k := key + uint64(lo)*golden
		for i := 0; i < len(block); i++ {
			i += simd.FirstHash(k+uint64(i)*golden, len(block)-i, need)
			if i == len(block) {
				break
			}
			l, h := block[i], mix(k+uint64(i+1)*golden)
			if orderKey(l, lo+i) < cut || tooLow(float64(l)*s.inv, best, h) {
				continue
			}
			if v := s.score(l, h); v > best || v == best && int32(lo+i) < win {
				best, win = v, int32(lo+i)
				need = hashBound(most, best)
			}
		}
	}
	return win
}

// hashBound is a hash that every token with logit / temperature ≤ most reaches if it reaches the score best:
// rounded down, so nothing that could win is passed over. The largest value means that none can.
func hashBound(most, best float64) uint64 {
	d := most - best + 1e-6 + 1e-14*(math.Abs(most)+math.Abs(best)) // the slack covers all rounding
	if d < -38 {                                                    // 1 − u is at least 2⁻⁵³ = exp(−36.7)
		return math.MaxUint64
	}
	if !(d < -1e-9) {
		return 0
	}
	x := math.Exp(d) * (1 << 52) // in units of the top 52 bits
	return (1<<52 - 2 - uint64(x)) << 12
}
