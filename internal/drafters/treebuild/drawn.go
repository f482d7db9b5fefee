// Trees for rejection sampling, whose children are drawn from the drafter's distribution without replacement and in
// order; see draft.Options.Sampled. How many a node gets must be said before they are drawn: a choice by what was drawn
// would change the distribution of what is accepted.

package treebuild

import (
	"math"

	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/sample"
)

// DrawSeed parts the noise of drawn trees from the coupled noise, whatever the seeds.
const DrawSeed = 0x6c6d2d647261776e

// maxNodes bounds every tree.
const maxNodes = 4096

// DrawPosition is the position whose noise draws the children of a node, which has a number of its own among those of
// its tree; at is the position of the root.
func DrawPosition(at, number int) int { return at*maxNodes + number }

// DrawnBreadth is how many children a node gets, most at most: as many as are likely to be tried and accepted, each
// where those before it were rejected. confidence is the largest probability that they are drawn with.
func DrawnBreadth(most int, confidence float32) int {
	n, a := 1, (1+confidence)/2
	rest := 1 - a
	for a /= 2; n < most && rest*a > calibrate.RowCost; rest *= 1 - a {
		n++
	}
	return n
}

// DrawnChances turns the probabilities with which candidates were drawn into estimates of being
// accepted by rejection sampling, for two distributions that overlap by half: a token that was sure
// to be drawn nearly always is; one of many equal ones in half of all cases; and those after the
// first only where the others were rejected, which shows that the models disagree. The controller's
// calibration corrects them.
func DrawnChances(c []sample.Candidate) {
	rest, share := 1.0, 1.0
	for i := range c {
		a := share * (1 + math.Exp(float64(c[i].LogProb))) / 2
		c[i].LogProb = float32(math.Log(rest * a))
		rest, share = max(rest*(1-a), 1e-6), 0.5
	}
}
