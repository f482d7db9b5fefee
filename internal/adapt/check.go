// Checks of what a state file may contain.

package adapt

import (
	"fmt"
	"math"
)

// The largest numbers of a state: with them sums are finite, and counts are exact in any reader.
const (
	mostCounted = 1 << 53
	mostSummed  = 1e15
)

// field is a number of a state, with its bounds.
type field struct {
	name        string
	value       float64
	least, most float64
}

// check returns an error that names a field with a value that no adapter saves.
func (k *saved) check() error {
	b, s := &k.Bandit, &k.Stats
	left := 0.0
	if b.Open { // an interval that has not ended
		left = 1
	}
	list := []field{
		{"bandit.trigger", float64(b.Trigger), 0, float64(actions - 1)},
		{"bandit.blocked", float64(b.Blocked), 0, blocked},
		{"bandit.remaining", float64(b.Remaining), left, interval},
		{"bandit.signal", b.Signal, 0, mostSummed},
		{"bandit.baseline", b.Baseline, 0, mostSummed},
		{"bandit.before.seconds", b.Before.Seconds, 0, mostSummed},
		{"stats.seconds", s.Seconds, 0, mostSummed},
		{"stats.decoding", s.Decoding, 0, mostSummed},
		{"stats.allowed", s.Allowed, 0, mostSummed},
		{"stats.lost", s.Lost, 0, mostSummed},
		{"stats.price", s.Price, 0, mostSummed},
		{"stats.slowdown", s.Slowdown, 0, 1},
		{"stats.gain", s.Gain, 0, mostCounted},
	}
	count := func(name string, n int) { list = append(list, field{name, float64(n), 0, mostCounted}) }
	count("bandit.queries", b.Queries)
	count("bandit.events", b.Events)
	count("bandit.before.tokens", b.Before.Tokens)
	count("bandit.before.rounds", b.Before.Rounds)
	count("stats.queries", s.Queries)
	count("stats.rejected", s.Rejected)
	count("stats.refused", s.Refused)
	count("stats.adopted", s.Adopted)
	count("stats.returned", s.Returned)
	count("stats.rollbacks", s.Rollbacks)
	for i, n := range s.Updates {
		count(fmt.Sprintf("stats.updates[%d]", i), n)
		list = append(list, field{fmt.Sprintf("bandit.value[%d]", i), b.Value[i], -mostSummed, mostSummed},
			field{fmt.Sprintf("stats.value[%d]", i), s.Value[i], -mostSummed, mostSummed})
	}
	for i, n := range k.Steps {
		count(fmt.Sprintf("steps[%d]", i), n)
	}
	for _, f := range append(list, k.Over.fields()...) {
		if !(f.value >= f.least && f.value <= f.most) {
			return fmt.Errorf("metadata %q: %s is %g: want %g to %g", stateKey, f.name, f.value, f.least, f.most)
		}
	}
	return nil
}

// fields returns the numbers of a comparison. The weights of its queries follow from their number.
func (c *comparison) fields() []field {
	weights := func(share float64) float64 { return (1 - math.Pow(share, float64(max(c.Queries, 0)))) / (1 - share) }
	most := 0.0
	if c.Queries > 0 {
		most = mostSummed
	}
	near := func(name string, value, want float64) field { return field{name, value, .999 * want, 1.001 * want} }
	return []field{
		{"over.queries", float64(c.Queries), 0, mostCounted},
		{"over.difference", c.Difference, -most, most},
		{"over.base", c.Base, 0, most},
		near("over.weight", c.Weight, weights(recent)),
		near("over.squares", c.Squares, weights(recent*recent)),
		{"over.dd", c.DD, 0, most},
		{"over.db", c.DB, -most, most},
		{"over.bb", c.BB, 0, most},
	}
}
