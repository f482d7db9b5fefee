// From the race of the coupled noise to chances, for drafters that rank candidates with it.

package draft

import (
	"math"

	"github.com/grovellm/grove/sample"
)

// reach is how far below the last candidate looked at scores of others are taken to lie.
const reach = 3

// CoupledChances makes the LogProb of each candidate below a node the logarithm of its chance of being the target's choice there, and
// orders them by it. c is what sample.Sampler.Top found, asked for k candidates at a temperature, over a drafter's logits;
// spread, above 0, says how far those are from the target's: the difference is taken for a Gumbel variable of that scale, for
// each token its own.
//
// Then the target's scores are the drafter's plus Gumbel variables of scale s = spread/temperature, and the largest is distributed
// as the softmax of score/s; towards temperature 0 that is the softmax of the logits over spread, without noise.
//
// Of the tokens beyond the k looked at only their probability is known, m. Scores of many unlikely tokens are a Poisson
// process of intensity m·exp(−x); those from the last candidate's score t down to t − reach add m·∫exp(x/s − x)dx.
func CoupledChances(c []sample.Candidate, k int, temperature, spread float32) {
	LeaningChances(c, k, temperature, spread, 0)
}

// LeaningChances is CoupledChances of a drafter smaller than its target, which spreads its probabilities too thin: of two
// tokens with the same score the one that is likely without its noise is chosen more often. lean is what a certain token has
// over one of no probability, in units of the noise; in between it goes by the root of the probability, which fits what
// grove's own target chose of its draft model's candidates. Tokens beyond those looked at lean as the second half of these.
func LeaningChances(c []sample.Candidate, k int, temperature, spread, lean float32) {
	if len(c) == 0 {
		return
	}
	inv := float64(temperature) / float64(spread)
	last := c[len(c)-1].Score
	beyond, low := 1.0, 0.0
	for i := range c {
		p := math.Exp(float64(c[i].LogProb))
		beyond -= p
		more := float64(lean) * math.Sqrt(p)
		if half := len(c) / 2; i >= half {
			low += more / float64(len(c)-half)
		}
		c[i].LogProb = float32((c[i].Score + more - last) * inv)
	}
	byChance(c)
	most := float64(c[0].LogProb)
	sum := 0.0
	for _, x := range c {
		sum += math.Exp(float64(x.LogProb) - most)
	}
	if len(c) == k && beyond > 0 {
		f := reach * 1.0
		if d := inv - 1; math.Abs(d) > 1e-3 {
			f = (1 - math.Exp(-reach*d)) / d
		}
		sum += beyond * f * math.Exp(low*inv-last-most)
	}
	for i := range c {
		c[i].LogProb -= float32(most + math.Log(sum))
	}
}

// byChance orders candidates by LogProb, the largest first; of equals the first stays so.
func byChance(c []sample.Candidate) {
	for i := 1; i < len(c); i++ {
		x, at := c[i], i
		for ; at > 0 && c[at-1].LogProb < x.LogProb; at-- {
			c[at] = c[at-1]
		}
		c[at] = x
	}
}
