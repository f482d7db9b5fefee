// Clusters of equal size by halving: balanced 2-means, applied recursively. If the size is a number
// of whole panels, no row of a head is unused. For the same number of rows, the best clusters cover
// at least as much of the target's probability as those of k-means (docs/training.md).

package shortlist

import (
	"cmp"
	"slices"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

type halving struct {
	pool *par.Pool
	x    nn.Mat // one row per token, of length one
	size int    // of a cluster

	score []float32 // of each token
}

const halvingRounds = 12

// halves divides tokens, whose rows of x have length one, into clusters of the given size. The last
// may be smaller.
func halves(pool *par.Pool, x nn.Mat, tokens []int32, size int) [][]int32 {
	h := halving{pool: pool, x: x, size: size, score: make([]float32, len(tokens))}
	all := make([]int32, len(tokens))
	for i := range all {
		all[i] = int32(i)
	}
	clusters := h.halve(all, nil)
	for _, c := range clusters {
		for i := range c {
			c[i] = tokens[c[i]]
		}
	}
	return clusters
}

// halve divides the tokens with these indices into clusters and appends them to all. The last may
// be smaller.
func (h *halving) halve(members []int32, all [][]int32) [][]int32 {
	n := (len(members) + h.size - 1) / h.size
	if n <= 1 {
		return append(all, members)
	}
	left := (n + 1) / 2 * h.size
	var center [2][]float32
	d := h.x.Cols
	mean := make([]float32, d)
	for _, i := range members {
		simd.Add(mean, h.x.Row(int(i)))
	}
	normalise(mean)
	// The starting centres: the token least like the mean, and the token least like that one.
	center[0] = slices.Clone(h.x.Row(int(h.farthest(members, mean))))
	center[1] = slices.Clone(h.x.Row(int(h.farthest(members, center[0]))))
	order := slices.Clone(members)
	for range halvingRounds {
		before := slices.Clone(order[:left])
		apart := slices.Clone(center[0])
		simd.Axpy(apart, -1, center[1])
		h.scores(members, apart)
		copy(order, members)
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(h.score[b], h.score[a]) })
		for side, part := range [][]int32{order[:left], order[left:]} {
			clear(center[side])
			for _, i := range part {
				simd.Add(center[side], h.x.Row(int(i)))
			}
			normalise(center[side])
		}
		if slices.Equal(before, order[:left]) {
			break
		}
	}
	slices.Sort(order[:left])
	slices.Sort(order[left:])
	all = h.halve(order[:left], all)
	return h.halve(order[left:], all)
}

// scores computes the products of the tokens' rows with a vector.
func (h *halving) scores(members []int32, v []float32) {
	const run = 256
	h.pool.Run((len(members)+run-1)/run, task(func(t int) {
		for _, i := range members[t*run : min((t+1)*run, len(members))] {
			h.score[i] = dot(h.x.Row(int(i)), v)
		}
	}))
}

func (h *halving) farthest(members []int32, v []float32) int32 {
	h.scores(members, v)
	return slices.MinFunc(members, func(a, b int32) int { return cmp.Compare(h.score[a], h.score[b]) })
}
