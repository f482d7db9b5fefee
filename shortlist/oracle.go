// How good lists are: the target's probability on them, and how often drafts from them are accepted, against the best list of the
// same size (paper 001 §3.2).

package shortlist

import (
	"cmp"
	"slices"

	"github.com/grovellm/grove/nn"
)

// Agreement is what lists made of drafts at some places, on average.
type Agreement struct {
	rows                 int
	size                 int
	coverage, oracle     float64
	accept, oracleAccept float64

	order  []int32 // scratch
	tokens []int32
}

// Add takes in a place: the target's distribution p there, the drafter's over all tokens q, and the drafter's list; nil: all tokens.
func (a *Agreement) Add(l *List, p, q []float32) {
	a.tokens = a.tokens[:0]
	if l == nil {
		for i := range p {
			a.tokens = append(a.tokens, int32(i))
		}
	} else {
		for _, token := range l.Tokens() {
			if token != nn.NoToken && int(token) < len(p) {
				a.tokens = append(a.tokens, token)
			}
		}
	}
	n := len(a.tokens)
	a.rows++
	a.size += n
	a.coverage += massOf(p, a.tokens)
	a.accept += accepted(p, q, a.tokens)

	// Lemma 2: of all lists of a size the target's likeliest tokens have most of its probability.
	a.order = a.order[:0]
	for i := range p {
		a.order = append(a.order, int32(i))
	}
	slices.SortFunc(a.order, func(i, j int32) int { return cmp.Or(cmp.Compare(p[j], p[i]), cmp.Compare(i, j)) })
	a.oracle += massOf(p, a.order[:n])
	a.oracleAccept += accepted(p, q, a.order[:n])
}

// massOf is the probability of tokens.
func massOf(p []float32, tokens []int32) (sum float64) {
	for _, token := range tokens {
		sum += float64(p[token])
	}
	return sum
}

// accepted is the chance that a token drawn from q, normalised over a list, is accepted against p: Σ min(p, q), equation 3. Where
// q has nothing on the list, nothing is drawn.
func accepted(p, q []float32, list []int32) (sum float64) {
	m := massOf(q, list)
	if m <= 0 {
		return 0
	}
	for _, token := range list {
		sum += min(float64(p[token]), float64(q[token])/m)
	}
	return sum
}

// Size is the mean number of tokens of a list.
func (a *Agreement) Size() float64 { return float64(a.size) / a.places() }

// Coverage is the target's probability on the lists, and Oracle that on the best lists of the same sizes.
func (a *Agreement) Coverage() float64 { return a.coverage / a.places() }
func (a *Agreement) Oracle() float64   { return a.oracle / a.places() }

// Accept is how often the drafter's draws from the lists are accepted, at temperature 1, and OracleAccept those from the best lists of the
// same sizes.
func (a *Agreement) Accept() float64       { return a.accept / a.places() }
func (a *Agreement) OracleAccept() float64 { return a.oracleAccept / a.places() }

func (a *Agreement) places() float64 { return float64(max(a.rows, 1)) }
