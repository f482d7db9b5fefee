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

// expertUnion is how many experts the rows of a pass choose together. Rows that chose independently
// would choose Count·(1 − (1 − Used/Count)ⁿ) of a layer's. Rows of a text choose alike, so n rows
// count as 1 + overlap·(n − 1) independent ones. overlap is learned from passes; it begins at 1.
type expertUnion struct {
	Experts
	overlap float64
	seen    int
}

// nearlyAll is a share of all experts that says little of how alike rows choose.
const nearlyAll = 0.98

// distinct is the experts that a pass of n rows is expected to read, of all layers.
func (u *expertUnion) distinct(n int) float64 {
	all := float64(u.Layers * u.Count)
	if u.Used >= u.Count {
		return all
	}
	return all * (1 - math.Pow(1-float64(u.Used)/float64(u.Count), 1+u.overlap*float64(n-1)))
}

// bytes is the weights that a pass of n rows is expected to read.
func (u *expertUnion) bytes(n int) float64 { return float64(u.Dense) + float64(u.Bytes)*u.distinct(n) }

// observe takes the experts that a pass of n rows read.
func (u *expertUnion) observe(n, read int) {
	share := float64(read) / float64(u.Layers*u.Count)
	if n < 2 || u.Used >= u.Count || !(share > 0 && share < nearlyAll) {
		return
	}
	rows := math.Log(1-share) / math.Log(1-float64(u.Used)/float64(u.Count))
	u.seen++
	u.overlap += (max(rows-1, 0)/float64(n-1) - u.overlap) / float64(min(u.seen, calibrate.Memory))
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

// readExperts makes the curve follow the weights that passes of a target with experts read.
func (c *costCurve) readExperts(x Experts) {
	if x.Layers > 0 && c.union == nil {
		c.union = &expertUnion{Experts: x, overlap: 1}
	}
}

func (c *costCurve) observeExperts(n, read int) {
	if c.union != nil && read > 0 {
		c.union.observe(n, read)
		c.waiting++
	}
}
