// Trees for rejection sampling, whose children are drawn from the drafter's distribution without replacement and in
// order; see draft.Options.Sampled. How many a node gets must be decided before they are drawn: a choice by what was
// drawn would change the distribution of accepted tokens.

package treebuild

import (
	"math"

	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/sample"
)

// DrawSeed separates the noise of drawn trees from the coupled noise, whatever the seeds.
const DrawSeed = 0x6c6d2d647261776e

// maxNodes is the most nodes of any tree.
const maxNodes = 4096

// DrawPosition returns the position whose noise draws the children of a node. number is unique among the nodes of its
// tree, and at is the position of the root.
func DrawPosition(at, number int) int { return at*maxNodes + number }

// DrawnBreadth returns how many children a node gets, at most most: as many as are likely to be accepted, each after
// those before it were rejected. confidence is the largest probability that they are drawn with.
func DrawnBreadth(most int, confidence float32) int {
	n, a := 1, (1+confidence)/2
	rest := 1 - a
	for a /= 2; n < most && rest*a > calibrate.RowCost; rest *= 1 - a {
		n++
	}
	return n
}

// DrawnChances turns the probabilities with which candidates were drawn into estimates of their
// acceptance by rejection sampling, for two distributions that overlap by half. A token that was
// certain to be drawn is nearly always accepted, and one of many equal ones in half of all cases.
// Those after the first are tried only if the others were rejected, which shows that the models
// disagree. The controller's calibration corrects the estimates.
func DrawnChances(c []sample.Candidate) {
	rest, share := 1.0, 1.0
	for i := range c {
		a := share * (1 + math.Exp(float64(c[i].LogProb))) / 2
		c[i].LogProb = float32(math.Log(rest * a))
		rest, share = max(rest*(1-a), 1e-6), 0.5
	}
}
