package control

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/drafters/calibrate"
)

// costCurve is a measured time that rises with a count: the seconds of a target pass by its rows,
// or of drafting by the levels drafted.
//
// Times are noisy, mostly in one direction: something else runs, and a pass takes longer. So each knot of the curve
// keeps its last times and uses their lower median, and a count never costs more than a larger one. Between measured
// knots the curve has the shape of the axis: a straight line, unless the target has experts, since more rows read more
// experts. While a count is unmeasured, its cost follows from the measured counts: see fit.
//
// Machines also become slower and faster for seconds or minutes. So times are kept as they would be
// at one speed, and the speed follows the last measurements, whatever their counts. A knot's memory
// is longer than the speed's. So a change of the machine moves the speed, and not the knots that
// happen to be measured then: these would look cheaper or dearer than the others ever after.
type costCurve struct {
	axis   *axis
	times  []recent // by knot
	value  []float64
	beyond float64      // rise for each unit of shape after the last measured knot
	union  *expertUnion // of a target with experts; nil: none
	rise   float64      // of the axis; with experts, of rows not counting the experts that they read
	seen   uint32       // measurements so far
	speed  float64      // seconds now for each second when the times were measured

	ratios  [speedTimes]float64 // the last measured times over the predicted ones
	rated   int                 // such ratios ever
	waiting int                 // measurements that value does not include yet
	known   bool
}

// axis has a curve's knots, and its shape before it is measured.
type axis struct {
	knots []int32
	rise  float64 // the cost of one more unit, as a share of the cost at the first knot
	least float64 // the least rise that measurements can lead to, in the same unit
}

// steps lists from, from+by, … below to.
func steps(dst []int32, from, to, by int32) []int32 {
	for ; from < to; from += by {
		dst = append(dst, from)
	}
	return dst
}

// rowAxis is dense where trees are small and every row counts. Before rows are measured, each is
// assumed to cost little: a pass of few rows spends its time reading weights.
var rowAxis = func() *axis {
	k := steps(nil, 1, 16, 1)
	k = steps(k, 16, 32, 2)
	k = steps(k, 32, 64, 4)
	k = steps(k, 64, 128, 8)
	return &axis{append(k, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048, 4096), calibrate.RowCost,
		calibrate.RowCost / 10}
}()

// levelAxis counts levels of a tree. A drafter that runs level by level takes about the same time for
// each, and once more for the text since the last tree.
var levelAxis = &axis{append(steps(nil, 0, 12, 1), 12, 16, 24, 32, 48, 64, 128), 1, 0}

// recent holds the last measured times of something.
type recent struct {
	t      [recentTimes]float64
	n      int    // times ever
	when   uint32 // the curve's count of measurements at the last one
	middle float64
}

func (r *recent) add(t float64) {
	r.t[r.n%len(r.t)] = t
	r.n++
	last, n := r.t, min(r.n, len(r.t))
	slices.Sort(last[:n])
	r.middle = last[(n-1)/2]
}

// median returns the lower median; 0 without a time.
func (r *recent) median() float64 { return r.middle }

const (
	// A knot's times count for freshFor measurements of the curve.
	freshFor = 2 * lastRefresh

	recentTimes = 15 // kept for a knot
	majority    = 3  // measurements that make a time certain

	// The first time of a knot counts as at most outlier times the curve's value there: it may be an accident.
	outlier = 1.5

	// The speed follows the median of the last speedTimes measurements, whatever their counts: neither one accident
	// nor two outliers move it. Each time it changes by the factor mostChange at most.
	speedTimes = 3
	mostChange = 2

	change = 1.1 // factor of the time of a plain pass: more is a change of the machine
)

func newCostCurve(a *axis) costCurve {
	return costCurve{axis: a, speed: 1, rise: a.rise, times: make([]recent, len(a.knots)),
		value: make([]float64, len(a.knots))}
}

// at returns the time of a count in seconds; 0 while nothing is known.
func (c *costCurve) at(n int) float64 {
	if c.waiting > 0 {
		c.fit()
	}
	return c.speed * c.normal(n)
}

// normal returns the time of a count at the speed at which times are kept.
func (c *costCurve) normal(n int) float64 {
	knots := c.axis.knots
	k, found := slices.BinarySearch(knots, int32(n))
	switch {
	case found:
		return c.value[k]
	case k == 0:
		return c.value[0]
	case k == len(knots):
		return c.value[k-1] + (c.shape(n)-c.shape(int(knots[k-1])))*c.beyond
	}
	share := float64(n-int(knots[k-1])) / float64(knots[k]-knots[k-1])
	return c.value[k-1] + share*(c.value[k]-c.value[k-1])
}

// shape predicts the time of a count over that of the first knot from the axis and the experts read. Reading experts
// and computing with them overlap in part: the time is less than the sum of both and more than the longer one.
func (c *costCurve) shape(n int) float64 {
	first := int(c.axis.knots[0])
	more := c.rise * float64(n-first)
	if c.union != nil {
		return math.Hypot(c.union.bytes(n)/c.union.bytes(first), more)
	}
	return 1 + more
}

// nearest returns the knot that a count's measurements belong to.
func (c *costCurve) nearest(n int) int {
	knots := c.axis.knots
	k, _ := slices.BinarySearch(knots, int32(n))
	if k == len(knots) || k > 0 && n-int(knots[k-1]) < int(knots[k])-n {
		k--
	}
	return k
}

// observe records a measurement in seconds.
func (c *costCurve) observe(n int, t float64) {
	if !(t >= 0) {
		return
	}
	r := &c.times[c.nearest(n)]
	switch was := c.speed * r.median(); {
	case r.n >= majority && was > 0:
		c.adjustSpeed(t / was)
	case c.known && r.n == 0:
		t = min(t, outlier*c.at(n))
	}
	c.seen++
	r.add(t / c.speed)
	r.when = c.seen
	c.waiting++
	if !c.known {
		c.fit()
	}
	c.known = true
}

// adjustSpeed adjusts the speed by the ratio of a measured time to the predicted one.
func (c *costCurve) adjustSpeed(ratio float64) {
	c.ratios[c.rated%speedTimes] = ratio
	c.rated++
	if c.rated < speedTimes {
		return
	}
	last := c.ratios
	slices.Sort(last[:])
	by := last[1]
	if by > outlier {
		by = last[0]
	} else if by < 1/outlier {
		by = last[2]
	}
	by = max(min(by, mostChange), 1./mostChange)
	c.speed *= by
	for i := range c.ratios {
		c.ratios[i] /= by
	}
	c.waiting++
}

// current reports whether knot k was measured recently. The first knot stays current until it is
// measured again (Controller.refresh), since everything else is compared with it.
func (c *costCurve) current(k int) bool {
	r := &c.times[k]
	return r.n > 0 && (k == 0 || c.seen-r.when < freshFor)
}

// fit computes the values of all knots from the current ones.
func (c *costCurve) fit() {
	c.waiting = 0
	knots := c.axis.knots
	first := -1
	last := -1
	least := math.Inf(1)
	for k := len(knots) - 1; k >= 0; k-- {
		if c.current(k) {
			least = min(least, c.times[k].median())
			c.value[k] = least
			first = k
			last = max(last, k)
		}
	}
	if first < 0 {
		return
	}
	if c.union != nil && first == 0 && last > 0 {
		read := c.union.bytes(int(knots[last])) / c.union.bytes(int(knots[0]))
		ratio := c.value[last] / c.value[0]
		c.rise = max(math.Sqrt(max(ratio*ratio-read*read, 0))/float64(knots[last]-knots[0]), c.axis.least)
	}
	shape := func(k int) float64 { return c.shape(int(knots[k])) }
	for k := range first {
		c.value[k] = c.value[first] * shape(k) / shape(first)
	}
	was := first // the measured knot before k
	for k := first + 1; k <= last; k++ {
		if !c.current(k) {
			continue
		}
		slope := (c.value[k] - c.value[was]) / (shape(k) - shape(was))
		for i := was + 1; i < k; i++ {
			c.value[i] = c.value[was] + slope*(shape(i)-shape(was))
		}
		was = k
	}
	// Above the measured knots the curve rises as it does over the upper half of the measured counts.
	c.beyond = c.value[0]
	if half := c.upperHalf(first, last); half < last {
		c.beyond = max((c.value[last]-c.value[half])/(shape(last)-shape(half)), c.axis.least/c.rise*c.value[0])
	}
	for k := last + 1; k < len(knots); k++ {
		c.value[k] = c.value[last] + c.beyond*(shape(k)-shape(last))
	}
}

// upperHalf returns the largest current knot with at most half of the last knot's count, or else the first one.
func (c *costCurve) upperHalf(first, last int) int {
	for k := last - 1; k > first; k-- {
		if c.current(k) && 2*c.axis.knots[k] <= c.axis.knots[last] {
			return k
		}
	}
	return first
}

// measuredTwice reports whether a count was measured more than once, so that an accident would have shown.
func (c *costCurve) measuredTwice(n int) bool { return c.times[c.nearest(n)].n > 1 }

// age returns how many measurements ago a count, or one within a sixth of it, was last measured.
func (c *costCurve) age(n int) uint32 {
	age := ^uint32(0)
	for k, at := range c.axis.knots {
		if 6*int(at) >= 5*n && 5*int(at) <= 6*n && c.times[k].n > 0 {
			age = min(age, c.seen-c.times[k].when)
		}
	}
	return age
}

// top returns the largest count measured recently.
func (c *costCurve) top() int {
	for k := len(c.times) - 1; k >= 0; k-- {
		if r := &c.times[k]; r.n > 0 && c.seen-r.when < freshFor {
			return int(c.axis.knots[k])
		}
	}
	return 0
}
