package bench

import (
	"math"
	"slices"
)

// Quartiles are the first quartile, the median and the third quartile.
type Quartiles [3]float64

// quartiles returns the quartiles of v, interpolated between two values, or zeros if v is empty. It does not change v.
func quartiles(v []float64) (q Quartiles) {
	if len(v) == 0 {
		return q
	}
	v = slices.Clone(v)
	slices.Sort(v)
	for i := range q {
		at := float64(i+1) / 4 * float64(len(v)-1)
		low := int(at)
		q[i] = v[low]
		if f := at - float64(low); f > 0 {
			q[i] += f * (v[low+1] - v[low])
		}
	}
	return q
}

// gram is the length of the runs of tokens whose repetition is counted: looping text flatters every drafter.
const gram = 4

// Repeats reports for each token whether the gram that ends there occurred earlier in the text.
func Repeats(tokens []int32) []bool {
	seen := map[[gram]int32]bool{}
	out := make([]bool, len(tokens))
	for i := gram; i <= len(tokens); i++ {
		g := [gram]int32(tokens[i-gram:])
		out[i-1] = seen[g]
		seen[g] = true
	}
	return out
}

// copied returns the fraction of an output's tokens that end a gram that occurs in the prompt.
func copied(prompt, output []int32) float64 {
	seen := map[[gram]int32]bool{}
	for i := gram; i <= len(prompt); i++ {
		seen[[gram]int32(prompt[i-gram:])] = true
	}
	text := append(slices.Clone(prompt[max(len(prompt)-gram+1, 0):]), output...)
	n := 0
	for i := len(text) - len(output) + 1; i <= len(text); i++ {
		if i >= gram && seen[[gram]int32(text[i-gram:])] {
			n++
		}
	}
	return share(float64(n), float64(len(output)))
}

// share returns a ratio, or 0 if all is 0.
func share(part, all float64) float64 {
	if all == 0 || math.IsNaN(part/all) {
		return 0
	}
	return part / all
}
