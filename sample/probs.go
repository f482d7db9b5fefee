// The distribution that Sample draws from.

package sample

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// Probs writes to dst the probability, over seeds, that Sample chooses each token: the softmax of the
// processed logits over the kept tokens; at temperature 0, one token has probability 1. dst has the
// length of logits and must not be the same slice.
func (s *Sampler) Probs(dst, logits []float32, h *History) {
	s.adjust(logits, h)
	defer s.restore(logits)
	clear(dst)
	top, l := largest(logits)
	if s.p.Temperature == 0 || math.IsInf(float64(l), 0) {
		dst[top] = 1
		return
	}
	list, cut := s.support(logits, l)
	if list == nil && cut == 0 {
		copy(dst, logits)
		simd.Softmax(dst, float32(s.inv))
		if dst[top] == dst[top] { // no logit is NaN
			return
		}
		clear(dst)
	}
	if list != nil {
		last := list[len(list)-1]
		cut = orderKey(logits[last], int(last))
	}
	w := s.exps(logits, l)
	sum := 0.0
	for i, e := range w {
		if orderKey(logits[i], i) < cut || !(logits[i] > negInf) {
			continue
		}
		dst[i] = e
		sum += float64(e)
	}
	for i := range dst {
		dst[i] = float32(float64(dst[i]) / sum)
	}
}
