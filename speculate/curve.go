// What things cost: a time as a function of a count, learned from measurements as they come.

package speculate

import "slices"

// curve is a measured, rising function: the time of a target pass by its rows, or of drafting by the levels drafted.
//
// Times are noisy, and mostly in one direction: something else runs, and a pass takes longer. So each knot keeps its
// last few times and counts by their lower median; the knots are made to rise by pooling neighbours
// that do not (isotonic regression, by medians again); between knots the curve is straight. Before anything is known of a
// count, its cost follows from those known: see fit.
type curve struct {
	axis      *axis
	times     []recent // by knot
	value     []float64
	beyond    float64 // rise a unit after the last knot
	pools     []pool
	portions  []portion
	seen      uint32 // measurements so far
	surprises int    // measurements in a row that were too large, or minus those that were too small
	waiting   int    // measurements that the values do not have yet
	known     bool
}

// axis says where a curve has knots, and what it looks like before it is measured.
type axis struct {
	knots []int32
	lower []uint8 // by count up to the last of a dense beginning: the last knot at or below it
	rise  float64 // what a unit more costs, as a share of the cost at the first knot
	least float64 // the same as the least that any measurement makes believe
}

func newAxis(rise, least float64, knots ...int32) *axis {
	a := &axis{knots: knots, rise: rise, least: least}
	for k, n := range knots[:len(knots)-1] {
		for i := n; i < knots[k+1] && n < 512; i++ {
			a.lower = append(a.lower, uint8(k))
		}
	}
	return a
}

// steps lists from, from+by, … below to.
func steps(dst []int32, from, to, by int32) []int32 {
	for ; from < to; from += by {
		dst = append(dst, from)
	}
	return dst
}

// rowAxis is dense where trees are small and every row counts. Before they are measured rows are taken to be cheap but not
// free: 3% of a pass each, which is what little a pass of few rows costs where weights are read from memory.
var rowAxis = func() *axis {
	k := steps(nil, 1, 16, 1)
	k = steps(k, 16, 32, 2)
	k = steps(k, 32, 64, 4)
	k = steps(k, 64, 128, 8)
	return newAxis(0.03, 0.003, append(k, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048, 4096)...)
}()

// levelAxis counts levels of a tree. A drafter that runs level by level needs about as long for each, and once more for
// the text since the last tree.
var levelAxis = newAxis(1, 0, append(steps(nil, 0, 12, 1), 12, 16, 24, 32, 48, 64, 128)...)

// recent is the last few times of a knot.
type recent struct {
	t    [5]float64
	n    int    // times ever
	when uint32 // the curve's count of measurements at the last
}

func (r *recent) add(t float64) {
	r.t[r.n%len(r.t)] = t
	r.n++
}

func (r *recent) len() int { return min(r.n, len(r.t)) }

// median is the lower one.
func (r *recent) median() float64 {
	t, n := r.t, r.len()
	for i := 1; i < n; i++ {
		for j := i; j > 0 && t[j] < t[j-1]; j-- {
			t[j], t[j-1] = t[j-1], t[j]
		}
	}
	return t[max(n-1, 0)/2]
}

// fresh is how many measurements of the curve a knot's own count for; young is the same for a knot with a single one, and doubles
// with each more. What seemed too dear to be tried again, perhaps for an accident, is tried again then.
const (
	fresh = 512
	young = 32

	// waitMost measurements at most wait for the values to be computed, which nobody may ask for while decoding is plain.
	waitMost = 8
)

func newCurve(a *axis) curve {
	return curve{axis: a, times: make([]recent, len(a.knots)), value: make([]float64, len(a.knots)), pools: make([]pool, 0, len(a.knots)), portions: make([]portion, 0, len(a.knots))}
}

// first is about the time of the least count: a few measurements may be missing.
func (c *curve) first() float64 { return c.value[0] }

// at is the time of a count; 0 while nothing is known.
func (c *curve) at(n int) float64 {
	if c.waiting > 0 {
		c.fit()
	}
	knots := c.axis.knots
	k := 0
	switch i := n - int(knots[0]); {
	case i <= 0:
		return c.value[0]
	case i < len(c.axis.lower):
		k = int(c.axis.lower[i])
	default:
		at, found := slices.BinarySearch(knots, int32(n))
		if k = at; !found {
			k--
		}
	}
	over := float64(n - int(knots[k]))
	if k == len(knots)-1 {
		return c.value[k] + over*c.beyond
	}
	return c.value[k] + over*(c.value[k+1]-c.value[k])/float64(knots[k+1]-knots[k])
}

// nearest is the knot that a count's measurements belong to.
func (c *curve) nearest(n int) int {
	knots := c.axis.knots
	k, _ := slices.BinarySearch(knots, int32(n))
	if k == len(knots) || k > 0 && n-int(knots[k-1]) < int(knots[k])-n {
		k--
	}
	return k
}

// observe takes a measurement, in seconds. Where a few in a row are all much larger than what is well known, or
// all much smaller, everything has changed: the machine is busy, or idle again. What is known of other counts is scaled along,
// to be measured anew; observe then reports true.
func (c *curve) observe(n int, t float64) (changed bool) {
	if !(t >= 0) {
		return false
	}
	k := c.nearest(n)
	r := &c.times[k]
	side, was := 0, r.median()
	if r.len() >= changeRows {
		if t > was*change {
			side = 1
		} else if t*change < was {
			side = -1
		}
	}
	if side == 0 || side*c.surprises < 0 {
		c.surprises = 0
	}
	if c.surprises += side; c.surprises*side >= changeRows {
		c.scale(t / was)
		c.surprises, changed = 0, true
	}
	c.seen++
	r.add(t)
	r.when = c.seen
	c.waiting++
	if changed || !c.known || c.waiting >= waitMost {
		c.fit()
	}
	c.known = true
	return changed
}

const (
	change     = 1.3
	changeRows = 3 // measurements
)

// scale multiplies all that is known, and keeps one time of each knot.
func (c *curve) scale(by float64) {
	for k := range c.times {
		if r := &c.times[k]; r.n > 0 {
			r.t[0], r.n = by*r.median(), 1
		}
	}
}

// current reports whether knot k was measured, not long ago. The first knot is what everything is compared
// with; it is measured again when it should be (Controller.refresh), and kept until then.
func (c *curve) current(k int) bool {
	r := &c.times[k]
	return r.n > 0 && (k == 0 || c.seen-r.when < min(fresh, uint32(young)<<(r.len()-1)))
}

// sure reports whether a count was measured more than once, so that an accident would have shown.
func (c *curve) sure(n int) bool { return c.times[c.nearest(n)].n > 1 }

// age is how many measurements ago a count was last measured, or one so near it that it is as good.
func (c *curve) age(n int) uint32 {
	age := ^uint32(0)
	for k, at := range c.axis.knots {
		if 5*int(at) > 6*n {
			break
		}
		if 6*int(at) >= 5*n && c.times[k].n > 0 {
			age = min(age, c.seen-c.times[k].when)
		}
	}
	return age
}

// top is the largest count measured in a while.
func (c *curve) top() int {
	for k := len(c.times) - 1; k >= 0; k-- {
		if r := &c.times[k]; r.n > 0 && c.seen-r.when < fresh {
			return int(c.axis.knots[k])
		}
	}
	return 0
}
