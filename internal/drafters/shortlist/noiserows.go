// Rows of tokens that noise may choose. Above temperature 0 a token is chosen by its logit and its
// noise, and the noise is known in advance (design.md §2.2): an unlikely token can be chosen only
// where its noise is high. Lists of clusters and text have 70 to 87 % of the tokens that grove's
// target chooses at temperature 1, and 90 % and more if the tokens of the highest noise are added.

package shortlist

import (
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/nn/output"
)

const (
	ahead       = 6              // positions after the root, which is already chosen
	noiseTokens = 48             // tokens for each, on average
	noiseRows   = 2 * gemm.Panel // rows for each position: further tokens are left out
)

// noiseBlock is the tokens with the highest noise at a position. The first n rows of the position are in use.
type noiseBlock struct {
	position int
	tokens   []int32
	n        int
}

// addNoiseRows gives rows to the tokens that noise may choose after at tokens of text, except those
// that are listed anyway, and reports whether a row changed. The rows depend only on position, seed
// and tokens, not on the chunks in which the text arrived.
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

// dropNoiseRows empties the rows of noise tokens.
func (o *textRows) dropNoiseRows() {
	for number := range o.noise {
		b := &o.noise[number]
		for ; b.n > 0; b.n-- {
			o.head.Unset(o.c.extra + number*noiseRows + b.n - 1)
		}
		b.position = 0
	}
}

// omitRepeated omits a sequence's rows from a list that has them after others rows, if has reports
// that their token is listed for another reason.
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
