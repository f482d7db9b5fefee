package peagle

import (
	"math"
	"math/rand/v2"
	"slices"
)

// group is the rows of a text that learn: places are the tokens whose entries do, in ascending
// order, and depths how many rows each has, the entry's included.
type group struct {
	places, depths []int
}

// rows is how many there are.
func (g *group) rows() (n int) {
	for _, d := range g.depths {
		n += d
	}
	return n
}

// drop is P-EAGLE's conditional drop: of the places of depth 0, depth d keeps a share of keep^d,
// and at least of least, drawn from those that depth d−1 keeps and that have a target. last is the
// last place with one.
func drop(seed, number uint64, places []int, depths, last int, keep, least float64) group {
	g := group{places, make([]int, len(places))}
	random := rand.New(rand.NewPCG(seed, number))
	left := make([]int, len(places)) // numbers of places
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
