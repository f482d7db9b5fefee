// Package calibrate turns a drafter's probabilities into measured chances of acceptance.
package calibrate

import "math"

// Table counts how often nodes with an accepted parent were accepted, by depth and by the drafter's own probability p.
// Drafters are over-confident, more so at larger depths, and some are plainly wrong.
//
// The estimate is stored at a few centres of p, and is linear between them. An observation counts for the two nearest
// centres, in proportion. Centres are powers of two of p below one half and of 1 − p above:
// 1/128, 1/64, … 1/2, 3/4, … 127/128. A centre starts at its own p, so that a calibration without
// observations changes nothing. The estimate of a class of depths starts from that of all depths
// together.
type Table struct {
	tries, hits [1 + DepthClasses][centres]float32 // row 0: all depths
	chances     Chances
	learned     bool // something was counted since the last Fit
}

// Chances are the estimates, by class of depth.
type Chances [DepthClasses][centres]float32

const (
	octaves = 7
	centres = 2*octaves - 1

	// weight of p itself, in observations; the estimate of all depths has twice that weight for a class of depths
	PriorWeight = 4
	Remember    = 96 // observations after which old ones count half
)

// Constants of the predictions of drafters and the controller.
const (
	Memory = 16 // trees or passes that a mean covers
	// the chance of a first candidate, and the gain of a level over that of the one before, until they are learned
	FirstChance = 0.5
	// cost of a row as a share of a pass, until it is measured: a row that adds fewer tokens is not worth it
	RowCost = 0.03
)

// New returns a table without observations.
func New() Table {
	t := Table{learned: true}
	t.Fit()
	return t
}

// centre returns the p of centre i.
func centre(i int) float32 {
	if i < octaves {
		return 1 / float32(int(1)<<(octaves-i))
	}
	return 1 - 1/float32(int(1)<<(i-octaves+2))
}

// place finds p between the centres: right of centre i by the share f of the way to the next. Left of the first
// centre lies p = 0, as centre -1.
func place(logProb float32) (i int, f float32) {
	p := float32(math.Exp(float64(logProb)))
	switch {
	case !(p > 0):
		return -1, 0
	case p < 1.0/(1<<octaves):
		return -1, p * (1 << octaves)
	case p <= 0.5:
		return octave(p)
	case p < 1-1.0/(1<<octaves):
		i, f = octave(1 - p)
		if f == 0 {
			return centres - 1 - i, 0
		}
		return centres - 2 - i, 1 - f
	}
	return centres - 1, 0
}

// octave places x, from 2^-octaves to 1/2. The bits of a float32 are its logarithm, linear within an octave.
func octave(x float32) (i int, f float32) {
	const mantissa = 23
	b := math.Float32bits(x)
	return int(b>>mantissa) - 127 + octaves, float32(b&(1<<mantissa-1)) / (1 << mantissa)
}

// Of returns the chance that a node at a depth is accepted if its parent was. The drafter's own
// estimate is exp(logProb).
func (c *Chances) Of(depth int, logProb float32) float32 {
	row := &c[DepthClass(depth)]
	i, f := place(logProb)
	var v float32
	if i >= 0 {
		v = (1 - f) * row[i]
	}
	if f > 0 {
		v += f * row[i+1]
	}
	return v
}

// Observe counts a node whose parent was accepted. It takes effect with the next Fit.
func (t *Table) Observe(depth int, logProb float32, accepted bool) {
	i, f := place(logProb)
	t.learned = true
	for _, row := range [...]int{0, 1 + DepthClass(depth)} {
		if i >= 0 {
			t.count(row, i, 1-f, accepted)
		}
		if f > 0 {
			t.count(row, i+1, f, accepted)
		}
	}
}

func (t *Table) count(row, i int, weight float32, accepted bool) {
	tries, hits := &t.tries[row][i], &t.hits[row][i]
	*tries += weight
	if accepted {
		*hits += weight
	}
	if *tries > Remember {
		*tries /= 2
		*hits /= 2
	}
}

// Fit computes the chances from the counts, if anything was counted since the last time.
func (t *Table) Fit() {
	if !t.learned {
		return
	}
	t.learned = false
	for i := range centres {
		all := (PriorWeight*centre(i) + t.hits[0][i]) / (PriorWeight + t.tries[0][i])
		for d := range t.chances {
			t.chances[d][i] = (2*PriorWeight*all + t.hits[1+d][i]) / (2*PriorWeight + t.tries[1+d][i])
		}
	}
}

// Learned returns the counts in the table's memory, which the next Fit uses.
func (t *Table) Learned() (counts [][]float32) {
	t.learned = true
	for i := range t.tries {
		counts = append(counts, t.tries[i][:], t.hits[i][:])
	}
	return counts
}

// Chances returns the chances of the last Fit.
func (t *Table) Chances() *Chances { return &t.chances }

// DepthClasses is how many classes of depth are distinguished in judging nodes: depths 1, 2, 3 and 4,
// 5 to 8, and beyond.
const DepthClasses = 5

// DepthClass returns the class of a depth, from 0.
func DepthClass(depth int) int {
	switch {
	case depth <= 2:
		return max(depth, 1) - 1
	case depth <= 4:
		return 2
	case depth <= 8:
		return 3
	}
	return 4
}
