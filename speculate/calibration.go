package speculate

import (
	"math"

	"github.com/grovellm/grove/draft"
)

// calibration counts how often nodes were accepted whose parent was, by depth and by the drafter's own probability p.
// Drafters are over-confident, at larger depths more so, and some are plainly wrong.
//
// Over p the estimate is given at a few centres, and is linear between them; an observation counts for the two centres
// beside it, in proportion. Centres are powers of two of p below one half and of 1 − p above: 1/128, 1/64, … 1/2, 3/4, …
// 127/128. A centre starts at its own p, so that a calibration without observations changes nothing. The estimate of a
// class of depths starts from that of all depths together.
type calibration struct {
	tries, hits [1 + draft.DepthClasses][centres]float32 // row 0: all depths
	chance      chances
	learned     bool // something was counted since the last fit
}

// chances are the estimates, by class of depth.
type chances [draft.DepthClasses][centres]float32

const (
	octaves = 7
	centres = 2*octaves - 1

	priorWeight = 4  // observations that p itself counts as
	allWeight   = 8  // observations that those of all depths count as, for one class
	remember    = 96 // observations after which old ones count half
)

func newCalibration() calibration {
	var c calibration
	c.fit()
	return c
}

// centre is the p of centre i.
func centre(i int) float32 {
	if i < octaves {
		return 1 / float32(int(1)<<(octaves-i))
	}
	return 1 - 1/float32(int(1)<<(i-octaves+2))
}

// place finds p between the centres: right of centre i by the share f of the way to the next. Left of the first
// centre lies p = 0, as centre -1.
func place(logProb float32) (i int, f float32) {
	p := float32(math.Exp(float64(logProb)))
	switch {
	case !(p > 0):
		return -1, 0
	case p < 1.0/(1<<octaves):
		return -1, p * (1 << octaves)
	case p <= 0.5:
		return octave(p)
	case p < 1-1.0/(1<<octaves):
		i, f = octave(1 - p)
		if f == 0 {
			return centres - 1 - i, 0
		}
		return centres - 2 - i, 1 - f
	}
	return centres - 1, 0
}

// octave places x, from 2^-octaves to 1/2. The bits of a float32 are its logarithm, linear within an octave.
func octave(x float32) (i int, f float32) {
	const mantissa = 23
	b := math.Float32bits(x)
	return int(b>>mantissa) - 127 + octaves, float32(b&(1<<mantissa-1)) / (1 << mantissa)
}

// of is the chance that a node is accepted if its parent was.
func (c *chances) of(depth int, logProb float32) float32 {
	row := &c[draft.DepthClass(depth)]
	i, f := place(logProb)
	var v float32
	if i >= 0 {
		v = (1 - f) * row[i]
	}
	if f > 0 {
		v += f * row[i+1]
	}
	return v
}

// observe counts a node whose parent was accepted. fit makes it count.
func (c *calibration) observe(depth int, logProb float32, accepted bool) {
	i, f := place(logProb)
	c.learned = true
	for _, row := range [...]int{0, 1 + draft.DepthClass(depth)} {
		if i >= 0 {
			c.count(row, i, 1-f, accepted)
		}
		if f > 0 {
			c.count(row, i+1, f, accepted)
		}
	}
}

func (c *calibration) count(row, i int, weight float32, accepted bool) {
	tries, hits := &c.tries[row][i], &c.hits[row][i]
	*tries += weight
	if accepted {
		*hits += weight
	}
	if *tries > remember {
		*tries /= 2
		*hits /= 2
	}
}

// fit computes the chances from the counts.
func (c *calibration) fit() {
	c.learned = false
	for i := range centres {
		all := (priorWeight*centre(i) + c.hits[0][i]) / (priorWeight + c.tries[0][i])
		for d := range c.chance {
			c.chance[d][i] = (allWeight*all + c.hits[1+d][i]) / (allWeight + c.tries[1+d][i])
		}
	}
}
