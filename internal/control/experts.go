package control

import (
	"math"

	"github.com/grovellm/grove/internal/calibrate"
)

// Experts says what the layers of a target with experts read. The zero value is a target without.
type Experts struct {
	Layers int // with experts
	Count  int // experts of a layer
	Used   int // of a row
	Bytes  int // of an expert's weights, on average
	Dense  int // of the weights that every pass reads
}

// expertUnion is how many experts the rows of a pass choose together. Some experts are chosen more
// often than others: the chance that a row chooses one has a beta distribution over the experts,
// with mean f = Used/Count. Then the chance that none of n rows chooses an expert is
//
//	∏ ((1 − f)(1 − ρ) + i·ρ) / ((1 − ρ) + i·ρ),  i = 0 … n − 1
//
// where ρ is the correlation of two rows' choices (the beta-binomial distribution's). It is 0 where
// rows choose independently, as is assumed at first, and 1 where all choose the same. It is learned
// from passes.
type expertUnion struct {
	Experts
	correlation float64
	seen        int
}

// nearlyAll is a share of all experts that says little of how alike rows choose.
const nearlyAll = 0.98

// unread is the share of experts that none of n rows chooses: the product above by gamma functions.
func (u *expertUnion) unread(n int, correlation float64) float64 {
	f := float64(u.Used) / float64(u.Count)
	if correlation < 1e-4 {
		return math.Pow(1-f, float64(n))
	}
	gamma := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	all := (1 - correlation) / correlation
	others := (1 - f) * all
	return math.Exp(gamma(others+float64(n)) - gamma(others) + gamma(all) - gamma(all+float64(n)))
}

// distinct is the experts that a pass of n rows is expected to read, of all layers.
func (u *expertUnion) distinct(n int) float64 {
	return float64(u.Layers*u.Count) * (1 - u.unread(n, u.correlation))
}

// bytes is the weights that a pass of n rows is expected to read.
func (u *expertUnion) bytes(n int) float64 { return float64(u.Dense) + float64(u.Bytes)*u.distinct(n) }

// observe takes the experts that a pass of n rows read.
func (u *expertUnion) observe(n, read int) {
	share := float64(read) / float64(u.Layers*u.Count)
	if n < 2 || u.Used >= u.Count || !(share > 0 && share < nearlyAll) {
		return
	}
	low, high := 0.0, 1.0 // more correlated rows leave more unread
	for high-low > 1e-4 {
		if middle := (low + high) / 2; u.unread(n, middle) < 1-share {
			low = middle
		} else {
			high = middle
		}
	}
	u.seen++
	u.correlation += (low - u.correlation) / float64(min(u.seen, calibrate.Memory))
}

// PassTimes predicts the time of a pass by its rows from times of other passes, as a Controller
// does.
type PassTimes struct{ curve costCurve }

// NewPassTimes returns the prediction for a target whose layers read x.
func NewPassTimes(x Experts) *PassTimes {
	p := &PassTimes{newCostCurve(rowAxis)}
	p.curve.readExperts(x)
	return p
}

// Observe takes the seconds of a pass of n rows, and the experts that it read, 0 where there are
// none.
func (p *PassTimes) Observe(n int, seconds float64, experts int) {
	p.curve.observeExperts(n, experts)
	p.curve.observe(n, seconds)
}

// Seconds is the predicted time of a pass of n rows; 0 while nothing is known.
func (p *PassTimes) Seconds(n int) float64 { return p.curve.at(n) }

// Experts is how many a pass of n rows is expected to read, of all layers; 0 where there are none.
func (p *PassTimes) Experts(n int) float64 {
	if p.curve.union == nil {
		return 0
	}
	return p.curve.union.distinct(n)
}

// readExperts makes the curve follow the weights that passes of a target with experts read.
func (c *costCurve) readExperts(x Experts) {
	if x.Layers > 0 && c.union == nil {
		c.union = &expertUnion{Experts: x}
	}
}

func (c *costCurve) observeExperts(n, read int) {
	if c.union != nil && read > 0 {
		c.union.observe(n, read)
		c.waiting++
	}
}
