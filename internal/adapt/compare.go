// Comparisons: which of two heads drafts better, from rounds that both drafted again.

package adapt

import "math"

const (
	recent   = .9 // weight of the previous query in a comparison
	fewest   = 3  // queries before a comparison means anything
	standard = 2  // standard errors that a difference must exceed
)

// comparison estimates how much longer one head's accepted lengths are than another's, from queries
// that both drafted again. The k-th query before the last has the weight recent^k.
//
// The gain is a ratio of sums, Σ w·d / Σ w·b: d is the sum of a query's differences, b that of the
// second head's lengths. Rounds of one query are alike, so its standard error counts queries, not rounds.
type comparison struct {
	Queries    int     `json:"queries"`
	Difference float64 `json:"difference"` // Σ w·d
	Base       float64 `json:"base"`       // Σ w·b
	Weight     float64 `json:"weight"`     // Σ w
	Squares    float64 `json:"squares"`    // Σ w²
	DD         float64 `json:"dd"`         // Σ w²·d²
	DB         float64 `json:"db"`         // Σ w²·d·b
	BB         float64 `json:"bb"`         // Σ w²·b²
}

// add takes in a query: the expected accepted lengths of its rounds with the two heads.
func (c *comparison) add(one, other []float64) {
	d, b := 0.0, 0.0
	for i := range one {
		d += one[i] - other[i]
		b += other[i]
	}
	c.Queries++
	c.Difference = recent*c.Difference + d
	c.Base = recent*c.Base + b
	c.Weight = recent*c.Weight + 1
	const square = recent * recent
	c.Squares = square*c.Squares + 1
	c.DD = square*c.DD + d*d
	c.DB = square*c.DB + d*b
	c.BB = square*c.BB + b*b
}

// gain returns the relative gain and its standard error, which is infinite while there are too few queries.
func (c *comparison) gain() (gain, err float64) {
	if c.Base > 0 {
		gain = c.Difference / c.Base
	}
	if c.Queries < fewest || c.Base <= 0 {
		return gain, math.Inf(1)
	}
	n := c.Weight * c.Weight / c.Squares // equivalent number of queries of equal weight
	residual := max(c.DD-2*gain*c.DB+gain*gain*c.BB, 0)
	return gain, math.Sqrt(residual*n/(n-1)) / c.Base
}

// better reports whether the first head is better, and not by chance.
func (c *comparison) better() bool {
	gain, err := c.gain()
	return gain > standard*err
}

// worse reports whether the first head is worse, and not by chance.
func (c *comparison) worse() bool {
	gain, err := c.gain()
	return gain < -standard*err
}

// least returns the part of the gain that is not due to chance, 0 or more.
func (c *comparison) least() float64 {
	gain, err := c.gain()
	return max(gain-err, 0)
}
