package lookup

import (
	"math/bits"

	"github.com/grovellm/grove/internal/calibrate"
)

// trust is how often the next token was among those seen after a match, by the length of the match
// and how often it had occurred: learned on the text itself. Until then a match of n tokens has it
// in n of n + 1 cases.
type trust [lengthClasses][countClasses]struct{ hits, tries float32 }

const (
	lengthClasses = 7 // by powers of two, the last of 64 tokens and more
	countClasses  = 3
)

func newTrust() (t trust) {
	for i := range t {
		for j := range t[i] {
			shortest := float32(int(1) << i)
			t[i][j].hits, t[i][j].tries = calibrate.PriorWeight*shortest/(shortest+1), calibrate.PriorWeight
		}
	}
	return t
}

func class(length, count int) (i, j int) {
	return min(bits.Len(uint(max(length, 1))), lengthClasses) - 1, min(bits.Len(uint(max(count, 1))), countClasses) - 1
}

func (t *trust) learn(length, count int, hit bool) {
	i, j := class(length, count)
	c := &t[i][j]
	c.tries++
	if hit {
		c.hits++
	}
	if c.tries > calibrate.Remember {
		c.tries /= 2
		c.hits /= 2
	}
}

// of is the probability that a match has the next token among its continuations.
func (t *trust) of(length, count int) float64 {
	i, j := class(length, count)
	return float64(t[i][j].hits / t[i][j].tries)
}

// odds are those of the same: at most one miss in as many tries as are remembered.
func (t *trust) odds(length, count int) float64 {
	p := t.of(length, count)
	return p / max(1-p, 1.0/calibrate.Remember)
}
