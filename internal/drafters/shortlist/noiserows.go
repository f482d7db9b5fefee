// Rows of tokens that noise may choose. Above temperature 0 a token is chosen for its logit and its
// noise, which is known before (design.md §2.2): an unlikely token can only be chosen where its
// noise is high. Lists of clusters and text have 70 to 87 % of what grove's target chooses at
// temperature 1, and 90 % and more with the tokens of the highest noise beside.

package shortlist

import (
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/nn/output"
)

const (
	ahead       = 6              // positions after the root, which has been chosen
	noiseTokens = 48             // tokens of each, on average
	noiseRows   = 2 * gemm.Panel // rows of a position: more are left out
)

// noiseBlock is the tokens with the highest noise at a position, and how many of them have rows.
type noiseBlock struct {
	position int
	tokens   []int32
	n        int
}

// addNoiseRows gives rows to the tokens that noise may choose after at tokens of text, except those
// listed in any case, and reports whether a row changed. The rows are a function of position, seed
// and tokens alone, not of the chunks in which the text came.
func (o *textRows) addNoiseRows(seed uint64, at int) (changed bool) {
	var done [ahead]bool
	for position := at + 1; position <= at+ahead; position++ {
		number := position % ahead
		b := &o.noise[number]
		first := o.c.extra + number*noiseRows
		n := 0
		if b.position != position {
			b.position, b.tokens = position, lower.AppendHighNoise(b.tokens[:0], seed, position, o.c.head.Vocab(),
				noiseTokens)
		}
		for _, token := range b.tokens {
			row := o.head.Row(token)
			if n == noiseRows || o.c.in[token] || o.c.head.Row(token) < 0 || row >= 0 &&
				(row < o.c.extra || done[(row-o.c.extra)/noiseRows]) {
				continue
			}
			if row != first+n || o.head.Tokens[row] != token {
				o.name(first+n, token)
				changed = true
			}
			n++
		}
		for changed = changed || n < b.n; b.n > n; b.n-- {
			o.head.Unset(first + b.n - 1)
		}
		b.n, done[number] = n, true
	}
	return changed
}

// dropNoiseRows empties the rows of noise.
func (o *textRows) dropNoiseRows() {
	for number := range o.noise {
		b := &o.noise[number]
		for ; b.n > 0; b.n-- {
			o.head.Unset(o.c.extra + number*noiseRows + b.n - 1)
		}
		b.position = 0
	}
}

// omitRepeated leaves a sequence's rows out of a list that begins with so many others and has their
// token for another reason.
func (s *contextState) omitRepeated(l *List, others int, has func(token int32) bool) {
	tokens := s.rows.head.Tokens
	for i, token := range tokens[:s.rows.n] {
		if has(token) {
			l.Omit(others + i)
		}
	}
	if s.noisy {
		others += s.rows.panels() * gemm.Panel
		for i, token := range tokens[s.c.extra:] {
			if token != output.NoToken && has(token) {
				l.Omit(others + i)
			}
		}
	}
}
