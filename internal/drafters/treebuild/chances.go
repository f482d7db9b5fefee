// From candidates ranked with the coupled noise to probabilities of acceptance.

package treebuild

import (
	"cmp"
	"math"
	"slices"

	"github.com/grovellm/grove/sample"
)

// CoupledChances makes the LogProb of each candidate below a node the logarithm of its probability
// of being the target's choice at a temperature above 0, and orders candidates by it. c is what
// sample.Sampler.Top found over a drafter's logits, asked for k candidates.
//
// Given the noise, the drafter's own choice is the candidate with the largest score,
// log-probability plus Gumbel noise. The target's scores differ as its logits do. If that difference
// is assumed to be a Gumbel variable of scale 1, the largest of the target's scores is distributed
// as the softmax of the drafter's. Below temperature 1 scores are in units of logits, with noise
// that shrinks with the temperature: near 0 chances are those of temperature 0.
//
// Only the total probability m of tokens beyond the k candidates is known. At temperature 1 scores
// of many unlikely tokens are a Poisson process of intensity m·exp(−x). Those from the last
// candidate's score t down to t − reach add ∫ exp(x)·m·exp(−x) dx = m·reach to the softmax's sum of
// exp(score). At temperature 0 there is no noise, and they add m.
func CoupledChances(c []sample.Candidate, k int, temperature float32) {
	if len(c) == 0 {
		return
	}
	beyond := 1.0
	for _, x := range c {
		beyond -= math.Exp(float64(x.LogProb))
	}
	others := math.Inf(-1) // the logarithm of the contribution of tokens beyond
	if len(c) == k && beyond > 0 {
		others = math.Log(beyond * (1 + (reach-1)*float64(min(temperature, 1))))
	}
	most := max(c[0].Score, others)
	sum := math.Exp(others - most)
	for _, x := range c {
		sum += math.Exp(x.Score - most)
	}
	for i := range c {
		c[i].LogProb = float32(c[i].Score - most - math.Log(sum))
	}
	slices.SortStableFunc(c, func(a, b sample.Candidate) int { return cmp.Compare(b.LogProb, a.LogProb) })
}

// reach is how far below the last candidate's score the scores of other tokens are assumed to lie.
const reach = 3
