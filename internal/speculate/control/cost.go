package control

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/drafters/calibrate"
)

// costCurve is a measured time that rises with a count: the seconds of a target pass by its rows,
// or of drafting by the levels drafted.
//
// Times are noisy, and mostly in one direction: something else runs, and a pass takes longer. So each knot of the curve
// keeps its last times and counts by their lower median, and a count never costs more than a larger count does. Between
// measured knots the curve has the shape of the axis: it is straight, but where a target has experts, of which more
// rows read more. Before anything is known of a count, its cost follows from the counts that are known: see fit.
//
// Machines become slower and faster too, for seconds or minutes. So times are kept as they would be
// at one speed, and the speed follows the last measurements, of whatever counts. A knot's memory is
// longer than the speed's. So a change of the machine moves the speed, and not the knots that
// happen to be measured at the time, which would look cheaper or dearer than the others ever after.
type costCurve struct {
	axis   *axis
	times  []recent // by knot
	value  []float64
	beyond float64      // rise for each unit of shape after the last measured knot
	union  *expertUnion // of a target with experts; nil: none
	rise   float64      // of the axis; with experts, of rows beside the experts that they read
	seen   uint32       // measurements so far
	speed  float64      // seconds now for each second when the times were measured

	ratios  [speedTimes]float64 // the last measured times over the predicted ones
	rated   int                 // such times ever
	waiting int                 // measurements that value does not include yet
	known   bool
}

// axis says where a curve has knots, and its shape before it is measured.
type axis struct {
	knots []int32
	rise  float64 // the cost of a unit more, as a share of the cost at the first knot
	least float64 // the least rise that measurements can lead to, in the same unit
}

// steps lists from, from+by, … below to.
func steps(dst []int32, from, to, by int32) []int32 {
	for ; from < to; from += by {
		dst = append(dst, from)
	}
	return dst
}

// rowAxis is dense where trees are small and every row counts. Before rows are measured each is
// taken to cost little of a pass: a pass of few rows spends its time on reading weights.
var rowAxis = func() *axis {
	k := steps(nil, 1, 16, 1)
	k = steps(k, 16, 32, 2)
	k = steps(k, 32, 64, 4)
	k = steps(k, 64, 128, 8)
	return &axis{append(k, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048, 4096), calibrate.RowCost,
		calibrate.RowCost / 10}
}()

// levelAxis counts levels of a tree. A drafter that runs level by level needs about as long for
// each, and once more for the text since the last tree.
var levelAxis = &axis{append(steps(nil, 0, 12, 1), 12, 16, 24, 32, 48, 64, 128), 1, 0}

// recent is the last times of something.
type recent struct {
	t      [recentTimes]float64
	n      int    // times ever
	when   uint32 // the curve's count of measurements at the last
	middle float64
}

func (r *recent) add(t float64) {
	r.t[r.n%len(r.t)] = t
	r.n++
	last, n := r.t, min(r.n, len(r.t))
	slices.Sort(last[:n])
	r.middle = last[(n-1)/2]
}

// median is the lower one; 0 without a time.
func (r *recent) median() float64 { return r.middle }

const (
	// A knot's times count for freshFor measurements of the curve.
	freshFor = 2 * lastRefresh

	recentTimes = 15 // kept of a knot
	majority    = 3  // measurements that make a time certain

	// The first time of a knot counts for at most outlier times what the curve had there: it may be an accident.
	outlier = 1.5

	// The speed follows the median of so many measurements, the last of all counts: one accident does not move it,
	// and two that are outliers do not. At a time it changes by the factor mostChange at most.
	speedTimes = 3
	mostChange = 2

	change = 1.1 // of the time of a plain pass: more is a change of the machine
)

func newCostCurve(a *axis) costCurve {
	return costCurve{axis: a, speed: 1, rise: a.rise, times: make([]recent, len(a.knots)),
		value: make([]float64, len(a.knots))}
}

// at is the time of a count in seconds; 0 while nothing is known.
func (c *costCurve) at(n int) float64 {
	if c.waiting > 0 {
		c.fit()
	}
	return c.speed * c.normal(n)
}

// normal is the time of a count at the speed at which times were measured.
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

// shape is what the time of a count is over that of the first, as far as the axis and the experts read say. Reading
// experts and computing with them overlap in part: the time is less than the sum of both and more than the longer one.
func (c *costCurve) shape(n int) float64 {
	first := int(c.axis.knots[0])
	more := c.rise * float64(n-first)
	if c.union != nil {
		return math.Hypot(c.union.bytes(n)/c.union.bytes(first), more)
	}
	return 1 + more
}

// nearest is the knot that a count's measurements belong to.
func (c *costCurve) nearest(n int) int {
	knots := c.axis.knots
	k, _ := slices.BinarySearch(knots, int32(n))
	if k == len(knots) || k > 0 && n-int(knots[k-1]) < int(knots[k])-n {
		k--
	}
	return k
}

// observe takes a measurement in seconds.
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

// adjustSpeed takes a measured time over the predicted one.
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

// current reports whether knot k was measured, not long ago. All else is compared with the first
// knot: it is kept until it is measured again (Controller.refresh).
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
	// Above the measured knots: as the curve rose over the upper half of the counts measured.
	c.beyond = c.value[0]
	if half := c.upperHalf(first, last); half < last {
		c.beyond = max((c.value[last]-c.value[half])/(shape(last)-shape(half)), c.axis.least/c.rise*c.value[0])
	}
	for k := last + 1; k < len(knots); k++ {
		c.value[k] = c.value[last] + c.beyond*(shape(k)-shape(last))
	}
}

// upperHalf is the largest current knot of at most half of the last knot's count, or else the first one.
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

// age is how many measurements ago a count was last measured, or one within a sixth of it.
func (c *costCurve) age(n int) uint32 {
	age := ^uint32(0)
	for k, at := range c.axis.knots {
		if 6*int(at) >= 5*n && 5*int(at) <= 6*n && c.times[k].n > 0 {
			age = min(age, c.seen-c.times[k].when)
		}
	}
	return age
}

// top is the largest count measured in a while.
func (c *costCurve) top() int {
	for k := len(c.times) - 1; k >= 0; k-- {
		if r := &c.times[k]; r.n > 0 && c.seen-r.when < freshFor {
			return int(c.axis.knots[k])
		}
	}
	return 0
}
