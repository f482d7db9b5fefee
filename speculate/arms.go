// Budgets for trees that may not be cut once they are drawn.

package speculate

// arms are budgets to choose from, each with what trees of that size are like. The best has the most tokens in the time. A
// neighbour of the best that was never tried is tried at once, and others now and then, so the choice climbs.
//
// The choice knows past rounds only, so what a tree holds has no part in it.
type arms struct {
	trees [armCount]arm
	best  int
}

// arm is what trees drawn under a budget are on average.
type arm struct {
	mass   float32 // nodes expected to be accepted
	nodes  float32 // verified, root not included
	levels float32
	n      int // trees seen
}

const (
	armCount  = 14 // 2, 3, 4, 6, 8, 12 … 192
	armMemory = 16 // trees
	armTry    = 8  // rounds from one try of another arm to the next
	armFirst  = 0
)

// armJumps are tried in turn: passes may cost the same up to some number of rows, so the next better budget may not be the next.
var armJumps = [...]int{-1, 1, 2, 4}

func armBudget(i int) int { return (2 + i%2) << (i / 2) }

// choose picks the arm for a sequence's round.
func (a *arms) choose(round, most int) int {
	i := a.best
	switch {
	case a.trees[i].n == 0:
	case i > 0 && a.trees[i-1].n == 0:
		i--
	case i+1 < armCount && a.trees[i+1].n == 0:
		i++
	case round%armTry == armTry-1:
		i += armJumps[round/armTry%len(armJumps)]
	}
	i = min(max(i, 0), armCount-1)
	for i > 0 && armBudget(i-1) >= most {
		i--
	}
	return i
}

// learn takes a tree. seconds is what a round takes with trees of so many nodes and levels.
func (a *arms) learn(i int, t arm, seconds func(nodes, levels int) float64) {
	of := &a.trees[i]
	of.n++
	part := 1 / float32(min(of.n, armMemory))
	of.mass += (t.mass - of.mass) * part
	of.nodes += (t.nodes - of.nodes) * part
	of.levels += (t.levels - of.levels) * part
	most := 0.0
	for i := range a.trees {
		of := &a.trees[i]
		if of.n == 0 {
			continue
		}
		if j := float64(1+of.mass) / seconds(int(of.nodes+.5), int(of.levels+.5)); j > most {
			most, a.best = j, i
		}
	}
}
