package lookup

import (
	"math/bits"

	"github.com/grovellm/grove/internal/calibrate"
)

// trust is how often the next token was among those seen after a match, by the length of the match
// and how often it had occurred: learned on the text itself. Until then a match of n tokens has it
// in n of n + 1 cases.
type trust struct {
	hits, tries [lengthClasses][countClasses]float32
}

const (
	lengthClasses = 7 // by powers of two, the last of 64 tokens and more
	countClasses  = 3
)

func newTrust() trust {
	var t trust
	for i := range t.hits {
		for j := range t.hits[i] {
			shortest := float32(int(1) << i)
			t.hits[i][j], t.tries[i][j] = calibrate.PriorWeight*shortest/(shortest+1), calibrate.PriorWeight
		}
	}
	return t
}

func class(length, count int32) (i, j int) {
	return min(bits.Len32(uint32(max(length, 1))), lengthClasses) - 1,
		min(bits.Len32(uint32(max(count, 1))), countClasses) - 1
}

func (t *trust) learn(length, count int32, hit bool) {
	i, j := class(length, count)
	t.tries[i][j]++
	if hit {
		t.hits[i][j]++
	}
	if t.tries[i][j] > calibrate.Remember {
		t.tries[i][j] /= 2
		t.hits[i][j] /= 2
	}
}

// of is the probability that a match has the next token among its continuations.
func (t *trust) of(length, count int32) float64 {
	i, j := class(length, count)
	return float64(t.hits[i][j] / t.tries[i][j])
}
