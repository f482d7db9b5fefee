// From measurements to a curve that rises.

package speculate

import (
	"cmp"
	"slices"
)

// pool is a run of measured knots that share a value.
type pool struct {
	first, last int
	value       float64
}

// portion is a knot's part in a pool.
type portion struct {
	value float64
	times int
}

// fit computes the values at all knots from the current ones.
func (c *curve) fit() {
	c.waiting = 0
	pools := c.pools[:0]
	for k := range c.times {
		if !c.current(k) {
			continue
		}
		p := pool{k, k, c.times[k].median()}
		for n := len(pools) - 1; n >= 0 && pools[n].value > p.value; n-- {
			p.first = pools[n].first
			p.value = c.pooled(p.first, k)
			pools = pools[:n]
		}
		pools = append(pools, p)
	}
	c.pools = pools

	// Below and between measured knots.
	knots, at, was := c.axis.knots, 0, -1 // was: the last measured knot
	for k := range c.times {
		if !c.current(k) {
			continue
		}
		for k > pools[at].last {
			at++
		}
		v := pools[at].value
		c.value[k] = v
		if was < 0 {
			first := v / c.shape(k)
			for i := range k {
				c.value[i] = first * c.shape(i)
			}
		} else {
			step := (v - c.value[was]) / float64(knots[k]-knots[was])
			for i := was + 1; i < k; i++ {
				c.value[i] = c.value[was] + step*float64(knots[i]-knots[was])
			}
		}
		was = k
	}

	// Above them: as they rose over the upper half of the counts measured, or, with a single knot, as the axis has it.
	half := was
	for k := was - 1; k >= 0; k-- {
		if c.current(k) {
			if half = k; 2*knots[k] <= knots[was] {
				break
			}
		}
	}
	c.beyond = c.axis.rise * c.value[0]
	if half < was {
		c.beyond = max((c.value[was]-c.value[half])/float64(knots[was]-knots[half]), c.axis.least*c.value[0])
	}
	for i := was + 1; i < len(knots); i++ {
		c.value[i] = c.value[was] + c.beyond*float64(knots[i]-knots[was])
	}
}

// pooled is the lower median of what is known of knots from first to last, each counting as often as it was measured.
func (c *curve) pooled(first, last int) float64 {
	c.portions = c.portions[:0]
	times := 0
	for k := first; k <= last; k++ {
		if c.current(k) {
			n := c.times[k].len()
			c.portions = append(c.portions, portion{c.times[k].median(), n})
			times += n
		}
	}
	slices.SortFunc(c.portions, func(a, b portion) int { return cmp.Compare(a.value, b.value) })
	for _, s := range c.portions {
		if times -= 2 * s.times; times <= 0 {
			return s.value
		}
	}
	return 0 // not reached: there is a knot
}

// shape is what knot k costs next to the first before anything is measured.
func (c *curve) shape(k int) float64 {
	return 1 + c.axis.rise*float64(c.axis.knots[k]-c.axis.knots[0])
}
