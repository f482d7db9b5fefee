package control

import (
	"math"

	"github.com/grovellm/grove/internal/drafters/calibrate"
)

// Experts describes what the layers of a target with experts read. The zero value is a target without.
type Experts struct {
	Layers int // layers with experts
	Count  int // experts of a layer
	Used   int // experts that a row uses in a layer
	Bytes  int // mean bytes of an expert's weights
	Dense  int // bytes of the weights that every pass reads
}

// expertUnion models how many experts the rows of a pass choose together. Some experts are chosen
// more often than others. The chance that none of n rows chooses an expert of popularity w is
// exp(−n·t·w), where t is such that one row chooses f = Used/Count of the experts. Popularity has an
// inverse Gaussian distribution with mean 1 and variance s. Then the share of experts that none of n
// rows chooses is
//
//	exp((1 − √(1 + 2·n·t·s))/s),  t = h + s·h²/2,  h = −ln(1 − f)
//
// It is (1 − f)^n for s = 0, when rows choose independently, and (1 − f)^√n for s = ∞. Rows that
// choose still more alike leave (1 − f)^(n^a), 0 ≤ a < 1/2.
type expertUnion struct {
	Experts
	// alike measures how alike rows choose: s/(1 + s)/2 while s is finite, and 1 − a beyond. It is 0 when rows
	// choose independently, and 1 when all rows choose the same. It begins at 0 and is learned from passes.
	alike float64
	seen  int
}

// nearlyAll is a share of all experts beyond which a pass says little about how alike rows choose.
const nearlyAll = 0.98

// unread returns the share of experts that none of n rows chooses.
func (u *expertUnion) unread(n int, alike float64) float64 {
	if u.Used >= u.Count {
		return 0
	}
	rows, h := float64(n), -math.Log1p(-float64(u.Used)/float64(u.Count))
	if alike >= 0.5 {
		return math.Exp(-h * math.Pow(rows, 1-alike))
	}
	s := 2 * alike / (1 - 2*alike)
	x := rows * h * (2 + h*s) // 2·n·t
	return math.Exp(-x / (1 + math.Sqrt(1+s*x)))
}

// distinct returns how many experts a pass of n rows is expected to read, over all layers.
func (u *expertUnion) distinct(n int) float64 {
	return float64(u.Layers*u.Count) * (1 - u.unread(n, u.alike))
}

// bytes returns the bytes of weights that a pass of n rows is expected to read.
func (u *expertUnion) bytes(n int) float64 { return float64(u.Dense) + float64(u.Bytes)*u.distinct(n) }

// observe records how many experts a pass of n rows read.
func (u *expertUnion) observe(n, read int) {
	share := float64(read) / float64(u.Layers*u.Count)
	if n < 2 || u.Used >= u.Count || !(share > 0 && share < nearlyAll) {
		return
	}
	low, high := 0.0, 1.0 // rows that choose more alike leave more unread
	for high-low > 1e-4 {
		if middle := (low + high) / 2; u.unread(n, middle) < 1-share {
			low = middle
		} else {
			high = middle
		}
	}
	u.seen++
	u.alike += (low - u.alike) / float64(min(u.seen, calibrate.Memory))
}

// PassTimes predicts the time of a pass from its rows and the times of other passes, as a Controller
// does.
type PassTimes struct{ curve costCurve }

// NewPassTimes returns a predictor for a target whose layers read x.
func NewPassTimes(x Experts) *PassTimes {
	p := &PassTimes{newCostCurve(rowAxis)}
	p.curve.readExperts(x)
	return p
}

// Observe records the seconds of a pass of n rows, and how many experts it read, or 0 if there are
// none.
func (p *PassTimes) Observe(n int, seconds float64, experts int) {
	p.curve.observeExperts(n, experts)
	p.curve.observe(n, seconds)
}

// Seconds returns the predicted time of a pass of n rows; 0 while nothing is known.
func (p *PassTimes) Seconds(n int) float64 { return p.curve.at(n) }

// Experts returns how many a pass of n rows is expected to read, over all layers; 0 if there are none.
func (p *PassTimes) Experts(n int) float64 {
	if p.curve.union == nil {
		return 0
	}
	return p.curve.union.distinct(n)
}

// readExperts makes the curve account for the experts that passes of the target read, if it has any.
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
