// From candidates ranked with the coupled noise to probabilities of acceptance.

package draft

import (
	"cmp"
	"math"
	"slices"

	"github.com/grovellm/grove/sample"
)

// CoupledChances makes the LogProb of each candidate below a node the logarithm of its probability
// of being the target's choice, above temperature 0, and orders candidates by it. c is what
// sample.Sampler.Top found over a drafter's logits, asked for k candidates.
//
// Given the noise, the drafter's own choice is the candidate with the largest score,
// log-probability plus Gumbel noise. The target's scores differ by what its logits differ; with
// that difference taken for a Gumbel variable of scale 1, the largest of the target's scores is
// distributed as the softmax of the drafter's.
//
// Of the tokens beyond the k candidates only their probability is known, m. Scores of many unlikely
// tokens are a Poisson process of intensity m·exp(−x). Those from the last candidate's score t down
// to t − reach add ∫ exp(x)·m·exp(−x) dx = m·reach to the softmax's sum of exp(score).
func CoupledChances(c []sample.Candidate, k int) {
	if len(c) == 0 {
		return
	}
	last, beyond, sum := c[len(c)-1].Score, 1.0, 0.0
	for _, x := range c {
		beyond -= math.Exp(float64(x.LogProb))
		sum += math.Exp(x.Score - last)
	}
	if len(c) == k && beyond > 0 {
		sum += beyond * reach * math.Exp(-last)
	}
	for i := range c {
		c[i].LogProb = float32(c[i].Score - last - math.Log(sum))
	}
	slices.SortStableFunc(c, func(a, b sample.Candidate) int { return cmp.Compare(b.LogProb, a.LogProb) })
}

// reach is how far below the last candidate's score the scores of other tokens are taken to lie.
const reach = 3
