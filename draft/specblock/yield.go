// What another block brings, which must be said before its pass.

package specblock

import "github.com/grovellm/grove/internal/calibrate"

// yield foretells it from what blocks brought before, on average.
type yield struct {
	ratio []float64 // by the passes before it: the worth that a pass added to the tree over what its starts were worth
	first []float64 // by slot: the chance of its row's first candidate, below nodes on the head's own path
}

func newYield(blocks, slots int) yield {
	y := yield{make([]float64, blocks), make([]float64, slots)}
	for i := range y.ratio {
		y.ratio[i] = calibrate.FirstChance
	}
	for i := range y.first {
		y.first[i] = calibrate.FirstChance
	}
	return y
}

// gain is what the block after so many is expected to add, from starts of so much worth.
func (y *yield) gain(blocks int, staked float64) float64 { return y.ratio[blocks] * staked }

// learn takes in what it added.
func (y *yield) learn(blocks int, staked, gained float64) {
	if staked > 0 {
		y.ratio[blocks] += (gained/staked - y.ratio[blocks]) / calibrate.Memory
	}
}

// learnFirst takes in the chance of a row's first candidate.
func (y *yield) learnFirst(slot int, chance float64) {
	y.first[slot] += (chance - y.first[slot]) / calibrate.Memory
}

// slots is how many rows of a block that is worth so much are worth least: the first in any case.
func (y *yield) slots(value, least float64) int {
	n := 1
	for value *= y.first[0]; n < len(y.first); n++ {
		if value *= y.first[n]; value < least {
			break
		}
	}
	return n
}
