package grow

import "github.com/grovellm/grove/internal/drafters/calibrate"

// yield is the yield of expanding a node: the chances of its first child, its second, and so on,
// averaged over nodes weighted by their worth. It predicts how much another level would add.
type yield struct {
	chance []float32
	weight float32
	trees  float32 // number of trees that the chances count as
}

// newYield returns a guess, which the first trees correct.
func newYield(children int) yield {
	y := yield{chance: make([]float32, children), trees: calibrate.PriorWeight}
	p := float32(calibrate.FirstChance)
	for i := range y.chance {
		y.chance[i] = p
		p *= 1 - calibrate.FirstChance
	}
	return y
}

func (y *yield) clear(children int) {
	if y.chance == nil {
		y.chance = make([]float32, children)
	}
	clear(y.chance)
	y.weight = 0
}

// learn learns from the summed yield of a tree's steps.
func (y *yield) learn(seen *yield) {
	if !(seen.weight > 0) {
		return
	}
	y.trees = min(y.trees+1, calibrate.Memory)
	for i := range y.chance {
		y.chance[i] += (seen.chance[i]/seen.weight - y.chance[i]) / y.trees
	}
}

// gain returns how much expanding the chosen nodes of g is expected to add to it, if a row costs so many tokens.
func (y *yield) gain(g *growth, row float32) (sum float32) {
	floor := row
	if g.pooled && g.best.full() {
		floor = max(row, g.best.least()) // a new node pushes out the least one
	}
	for _, node := range g.expand {
		for _, chance := range y.chance {
			if d := g.worth[node]*chance - floor; d > 0 {
				sum += d
			}
		}
	}
	return sum
}

// ofRows returns how much the rows of the chosen nodes are expected to add to a rebuilt tree, which
// already has children of the nodes from the text. For such trees chance[0] is the gain of a row per
// unit of its node's worth.
func (y *yield) ofRows(g *growth) (sum float32) {
	for _, node := range g.expand {
		sum += g.worth[node]
	}
	return max(sum*y.chance[0], 0)
}

// least keeps the n largest of the numbers added, in a heap with the least first.
type least struct {
	n    int
	heap []float32
}

func (l *least) reset(n int) {
	l.n = n
	l.heap = l.heap[:0]
}

func (l *least) full() bool { return len(l.heap) == l.n }

// least returns the least of the numbers kept, or 0 if there are none.
func (l *least) least() float32 {
	if len(l.heap) == 0 {
		return 0
	}
	return l.heap[0]
}

// add adds v, and reports whether it is among the n largest so far. Of equal ones the first stay.
func (l *least) add(v float32) bool {
	h := l.heap
	if len(h) < l.n {
		h = append(h, v)
		l.heap = h
		for i := len(h) - 1; i > 0 && h[(i-1)/2] > h[i]; i = (i - 1) / 2 {
			h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		}
		return true
	}
	if len(h) == 0 || !(v > h[0]) {
		return false
	}
	h[0] = v
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if c >= len(h) || h[i] <= h[c] {
			return true
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
