// What a probability is worth: how often what was claimed with it came true.

package merge

import (
	"math"

	"github.com/grovellm/grove/draft"
)

// A calibration is about claims of one kind, such as what one part says of its nodes: that a node is accepted, given that
// its parent was, with probability p. It counts claims, by the depth of the node and by p; how many came true; and how many should
// have. What it makes of a new claim has the odds of p, times the observed odds over the claimed ones
// of claims like it. So it keeps apart what a drafter keeps apart, however wrong it is about the level, and where all is
// as claimed it changes nothing.
//
// It starts as if it had seen a few claims of p come true as claimed; a depth leans on all depths together until it
// has seen enough of its own; and it forgets, as text changes.
type calibration struct {
	all   [bins]tally
	depth [draft.DepthClasses][bins]tally
}

type tally struct{ claims, true, said float32 }

const (
	bins = 9

	leanOnClaim = 4   // claims that the prior counts as
	leanOnAll   = 8   // claims that those of all depths count as for one
	remember    = 128 // claims after which old ones count half

	// No claim counts as less or more certain than this, or no observation could ever correct it.
	least, most = 1e-3, 1 - 1e-3
)

// borders part the bins; they lie closer where a small change of p is a large one of the odds.
var borders = [bins - 1]float32{.02, .06, .15, .35, .65, .85, .94, .98}

func bin(p float32) int {
	i := 0
	for i < len(borders) && p > borders[i] {
		i++
	}
	return i
}

// within is p as a claim; of NaN it makes the least.
func within(p float32) float32 {
	if !(p > least) {
		return least
	}
	return min(p, most)
}

// of is the chance of a node at a depth that is claimed to have p.
func (c *calibration) of(depth int, p float32) float32 {
	p = within(p)
	i := bin(p)
	a, d := &c.all[i], &c.depth[draft.DepthClass(depth)][i]
	came := (a.true + leanOnClaim*p) / (a.claims + leanOnClaim)
	said := (a.said + leanOnClaim*p) / (a.claims + leanOnClaim)
	came = (d.true + leanOnAll*came) / (d.claims + leanOnAll)
	said = (d.said + leanOnAll*said) / (d.claims + leanOnAll)
	o := odds(p) * odds(came) / odds(said)
	return o / (1 + o)
}

func odds(p float32) float32 { return p / (1 - p) }

// learn takes note of what became of a claim.
func (c *calibration) learn(depth int, p float32, came bool) {
	p = within(p)
	i := bin(p)
	for _, t := range [...]*tally{&c.all[i], &c.depth[draft.DepthClass(depth)][i]} {
		t.claims++
		t.said += p
		if came {
			t.true++
		}
		if t.claims > remember {
			t.claims, t.true, t.said = t.claims/2, t.true/2, t.said/2
		}
	}
}

// exp and log are of float32s, as trees have them.
func exp(x float32) float32 { return float32(math.Exp(float64(x))) }
func log(x float32) float32 { return float32(math.Log(float64(x))) }
