// From the race of the coupled noise to chances, for drafters that rank candidates with it.

package draft

import (
	"math"

	"github.com/grovellm/grove/sample"
)

// reach is how far below the last candidate looked at scores of others are taken to lie.
const reach = 3

// CoupledChances makes the LogProb of each candidate below a node the logarithm of its chance of being the target's choice there.
// c is what sample.Sampler.Top found, first place first, asked for k candidates at a temperature, over a drafter's logits; spread, above 0, says how far
// those are from the target's: the difference is taken for a Gumbel variable of that scale, for each token its own.
//
// Then the target's scores are the drafter's plus Gumbel variables of scale s = spread/temperature, and the largest is distributed
// as the softmax of score/s; towards temperature 0 that is the softmax of the logits over spread, without noise.
//
// Of the tokens beyond the k looked at only their probability is known, m. Scores of many unlikely tokens are a Poisson
// process of intensity m·exp(−x); those from the last candidate's score t down to t − reach add m·∫exp(x/s − x)dx.
func CoupledChances(c []sample.Candidate, k int, temperature, spread float32) {
	if len(c) == 0 {
		return
	}
	inv := float64(temperature) / float64(spread)
	first := c[0].Score
	sum, beyond := 0.0, 1.0
	for _, x := range c {
		sum += math.Exp((x.Score - first) * inv)
		beyond -= math.Exp(float64(x.LogProb))
	}
	if len(c) == k && beyond > 0 {
		f, t := reach*1.0, c[k-1].Score
		if d := inv - 1; math.Abs(d) > 1e-3 {
			f = (1 - math.Exp(-reach*d)) / d
		}
		sum += beyond * f * math.Exp(t*(inv-1)-first*inv)
	}
	for i := range c {
		c[i].LogProb = float32((c[i].Score-first)*inv - math.Log(sum))
	}
}
