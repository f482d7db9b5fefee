package lookup

// trust is how often the next token was among those seen after a match, by the length of the
// match and how often it had occurred: learned on the text itself, from a prior.
type trust struct {
	hits, tries [lengthClasses][countClasses]float32
}

const (
	lengthClasses = 9
	countClasses  = 3
	priorTries    = 6  // what the prior weighs
	memory        = 96 // tries after which old ones fade
)

// prior is a guess for text at large; it settles the first few matches only.
var prior = [lengthClasses]float32{.25, .4, .5, .6, .7, .8, .88, .93, .97}

func newTrust() trust {
	var t trust
	for i := range t.hits {
		for j := range t.hits[i] {
			t.hits[i][j], t.tries[i][j] = priorTries*prior[i], priorTries
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
	if t.tries[i][j] > memory {
		t.tries[i][j] /= 2
		t.hits[i][j] /= 2
	}
}

// of is the probability that a match has the next token among its continuations.
func (t *trust) of(length, count int32) float64 {
	i, j := class(length, count)
	return float64(t.hits[i][j] / (t.tries[i][j] + 0.5))
}
