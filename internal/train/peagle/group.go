package peagle

import (
	"math"
	"math/rand/v2"
	"slices"
)

// group is the rows of a text that learn: places are the tokens whose entries learn, in ascending
// order, and depths is the number of rows of each, including the entry's.
type group struct {
	places, depths []int
}

// rows is the number of rows in the group.
func (g *group) rows() (n int) {
	for _, d := range g.depths {
		n += d
	}
	return n
}

// drop is P-EAGLE's conditional drop: depth d keeps a share keep^d of the places of depth 0, and
// at least the share least, drawn from those that depth d−1 keeps and that have a target. last is
// the last place with a target.
func drop(seed, number uint64, places []int, depths, last int, keep, least float64) group {
	g := group{places, make([]int, len(places))}
	random := rand.New(rand.NewPCG(seed, number))
	left := make([]int, len(places)) // indices into places
	for i := range left {
		left[i] = i
	}
	for d := range depths {
		left = slices.DeleteFunc(left, func(i int) bool { return places[i]+d > last })
		n := min(len(left), int(float64(len(places))*max(math.Pow(keep, float64(d)), least)))
		random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		left = left[:n]
		for _, i := range left {
			g.depths[i]++
		}
	}
	return g
}
