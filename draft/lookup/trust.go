package lookup

import "github.com/grovellm/grove/internal/calibrate"

// trust is how often the next token was among those seen after a match, by the length of the
// match and how often it had occurred: learned on the text itself, from a prior.
type trust struct {
	hits, tries [lengthClasses][countClasses]float32
}

const (
	lengthClasses = 9
	countClasses  = 3
	priorLength   = 3 // tokens: a match of as many has the next token in half of all cases, until that is learned
)

func newTrust() trust {
	var t trust
	for i, longest := range [lengthClasses]float32{1, 2, 3, 4, 6, 10, 20, 50, 100} {
		for j := range t.hits[i] {
			t.hits[i][j], t.tries[i][j] = calibrate.PriorWeight*longest/(longest+priorLength), calibrate.PriorWeight
		}
	}
	return t
}

func class(length, count int32) (i, j int) {
	switch {
	case length <= 4:
		i = int(length) - 1
	case length <= 6:
		i = 4
	case length <= 10:
		i = 5
	case length <= 20:
		i = 6
	case length <= 50:
		i = 7
	default:
		i = 8
	}
	switch {
	case count > 3:
		j = 2
	case count > 1:
		j = 1
	}
	return max(i, 0), j
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
