// What noise may choose. Above temperature 0 a token is chosen for its logit and its noise, which is known before (design.md §2.2): an
// unlikely token can only be chosen where its noise is high. Lists of clusters and text have 70 to 87 % of what grove's target
// chooses at temperature 1, and 90 % and more with the tokens of the highest noise beside.

package shortlist

import (
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
)

const (
	ahead    = 6              // positions after the root, which has been chosen
	loudest  = 48             // tokens of each, on average
	loudRows = 2 * gemm.Panel // rows of a position: more are left out
)

// loudBlock is the tokens with the highest noise at a position, and how many of them have rows.
type loudBlock struct {
	position int
	tokens   []int32
	n        int
}

// listen gives rows to what noise may choose after at tokens of text, except to what is listed in any case, and reports whether that is
// news. The rows are a function of position, seed and the tokens that came up alone: however the text was told, they are the same.
func (o *own) listen(seed uint64, at int) (news bool) {
	var done [ahead]bool
	for position := at + 1; position <= at+ahead; position++ {
		number := position % ahead
		b, first, n := &o.loud[number], o.c.extra+number*loudRows, 0
		if b.position != position {
			b.position, b.tokens = position, sample.Loud(b.tokens[:0], seed, position, o.c.head.Vocab(), loudest)
		}
		for _, token := range b.tokens {
			row := o.head.Row(token)
			if n == loudRows || o.c.in[token] || o.c.head.Row(token) < 0 || row >= 0 && (row < o.c.extra || done[(row-o.c.extra)/loudRows]) {
				continue
			}
			if row != first+n || o.head.Tokens[row] != token {
				o.name(first+n, token)
				news = true
			}
			n++
		}
		for news = news || n < b.n; b.n > n; b.n-- {
			o.head.Unset(first + b.n - 1)
		}
		b.n, done[number] = n, true
	}
	return news
}

// hush takes the rows away.
func (o *own) hush() {
	for number := range o.loud {
		b := &o.loud[number]
		for ; b.n > 0; b.n-- {
			o.head.Unset(o.c.extra + number*loudRows + b.n - 1)
		}
		b.position = 0
	}
}

// mute leaves a sequence's own rows out of a list that begins with so many others and has a token for other reasons.
func (s *contextState) mute(l *List, others int, has func(token int32) bool) {
	tokens := s.own.head.Tokens
	for i, token := range tokens[:s.own.n] {
		if has(token) {
			l.Mute(others + i)
		}
	}
	if s.noisy {
		others += s.own.panels() * gemm.Panel
		for i, token := range tokens[s.c.extra:] {
			if token != nn.NoToken && has(token) {
				l.Mute(others + i)
			}
		}
	}
}
