package train

import (
	"math/rand/v2"
	"slices"
)

// DrawAnchors draws n different places from first to last of the text with the given number, or
// fewer if there are not as many, and returns them in ascending order. Places where the text only
// repeats itself, as a target's text does at temperature 0, are included with the given share: a
// head soon learns to continue repetitions, and each teaches it the same.
func DrawAnchors(seed, number uint64, text []int32, first, last, block, n int, share float64) []int {
	r := rand.New(rand.NewPCG(seed, number))
	var all []int
	for a := first; a <= last; a++ {
		if share == 1 || !repeats(text[:min(a+block, len(text))], a) || r.Float64() < share {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		all = append(all, first+r.IntN(last-first+1))
	}
	n = min(n, len(all))
	for i := range n {
		j := i + r.IntN(len(all)-i)
		all[i], all[j] = all[j], all[i]
	}
	slices.Sort(all[:n])
	return all[:n]
}

// longestPeriod is the most tokens in a repeated passage.
const longestPeriod = 96

// repeats reports whether the text after a place only repeats the text just before it, and not for
// the first time.
func repeats(text []int32, at int) bool {
	for period := 1; period <= min(longestPeriod, (at+1)/2); period++ {
		i := len(text) - 1
		for i > at-period && text[i] == text[i-period] {
			i--
		}
		if i == at-period {
			return true
		}
	}
	return false
}
