// Examples: what a head learns from in one text, and how it is collected while the text is decoded.

package learn

import (
	"slices"
	"unsafe"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/sample"
)

// Example is a stretch of text with the target's results for it. It does not change once it is
// finished, so any goroutine may read it.
type Example struct {
	Tokens []int32   // including the last one, whose row the target has not computed
	Taps   []float32 // of all rows but the last token's: (len(Tokens) − 1) × Width
	Width  int       // of a row's taps, one after the other

	// Said has the tokens that the target thought likely after row From and the rows that follow it,
	// Places for each, the likeliest first.
	From int
	Said []sample.Candidate

	Rounds  []Round
	Drafted []int32 // tokens of the verified nodes: the drafter's guesses, right and wrong
}

// Round is a verified tree.
type Round struct {
	Root     int  // the row of its root
	Accepted int  // nodes below the root that the target chose
	Rejected bool // the target then chose a token against the drafter: the place Root + Accepted + 1 counts as rejected
	Looked   int  // places below the root that the drafter looked at
}

// Places is how many of the target's likeliest tokens are kept for a row. All others together have
// a probability of less than a hundredth nearly everywhere.
const Places = 16

// Examples have at most mostRows rows. In a text that goes on, and in prompts, the last before rows
// are kept in front of the first round.
const (
	mostRows = 384
	before   = 128
)

// said returns the tokens that the target thought likely after a row.
func (l *Example) said(row int) []sample.Candidate {
	return l.Said[(row-l.From)*Places : (row-l.From+1)*Places]
}

// Bytes returns the memory that an example holds.
func (l *Example) Bytes() int {
	return 4*(cap(l.Tokens)+cap(l.Taps)+cap(l.Drafted)) +
		cap(l.Said)*int(unsafe.Sizeof(sample.Candidate{})) + cap(l.Rounds)*int(unsafe.Sizeof(Round{}))
}

// Collector makes examples from the rows of one sequence.
type Collector struct {
	taps, vocab int
	sampler     *sample.Sampler // ranks as at temperature 0
	example     *Example
}

// NewCollector returns a collector for a drafter with so many taps, over a vocabulary.
func NewCollector(taps, vocab int) (*Collector, error) {
	s, err := sample.New(sample.Params{}, vocab)
	return &Collector{taps: taps, vocab: vocab, sampler: s, example: new(Example)}, err
}

// Take takes in committed rows. round is the outcome of their tree, nil if nothing was drafted. If an
// example becomes full, Take returns it; the next begins with its last rows.
func (c *Collector) Take(r *draft.Rows, round *Round) (full *Example) {
	if r.Pass == nil { // without taps: nothing before can be read
		c.example = new(Example)
		return nil
	}
	l := c.example
	if len(l.Tokens) > 0 {
		l.Tokens = l.Tokens[:len(l.Tokens)-1] // the first of the rows
	}
	switch {
	case len(l.Tokens)+len(r.Tokens) <= mostRows:
	case len(l.Rounds) > 0:
		full = l
		c.example = full.last(before)
		full.Tokens = append(full.Tokens, r.Tokens[0])
		l = c.example
	default: // nothing was drafted
		l.forget(len(l.Tokens) - before)
	}
	skip := 0
	if n := len(r.Tokens) - before; r.Next < 0 && n > 0 && len(l.Rounds) == 0 {
		*l, skip = Example{}, n // a prompt's earlier rows are not kept
	}
	first := len(l.Tokens)
	for i := skip; i < len(r.Tokens); i++ {
		l.Tokens = append(l.Tokens, r.Tokens[i])
		l.Width = 0
		for t := range c.taps {
			x := r.Tap(t, i)
			l.Width += len(x)
			l.Taps = append(l.Taps, x...)
		}
	}
	l.Tokens = append(l.Tokens, r.Next) // −1 while the prompt is read: the next rows replace it
	if r.Next < 0 {
		l.forget(len(l.Tokens) - 1 - before)
		return full
	}
	if len(l.Said) == 0 {
		l.From = first
	}
	for _, node := range r.Nodes {
		at := len(l.Said)
		l.Said = slices.Grow(l.Said, Places)[:at+Places]
		n := len(c.sampler.Top(l.Said[at:at:at+Places], r.Pass.Logits(r.Sequence, int(node))[:c.vocab], 0, nil))
		for i := at + n; i < at+Places; i++ {
			l.Said[i] = sample.Candidate{Token: -1}
		}
	}
	if round != nil {
		at := *round
		at.Root = first
		l.Rounds = append(l.Rounds, at)
		l.Drafted = append(l.Drafted, r.Tree.Token[1:]...)
	}
	return full
}

// Finish returns the example of the rows taken in since the last one, or nil if there is nothing to
// learn. The collector must not be used again.
func (c *Collector) Finish() *Example {
	if len(c.example.Rounds) == 0 {
		return nil
	}
	return c.example
}

// forget drops the first rows of an example without rounds, and all that the target said.
func (l *Example) forget(rows int) {
	if rows > 0 {
		l.Tokens = slices.Delete(l.Tokens, 0, rows)
		l.Taps = slices.Delete(l.Taps, 0, rows*l.Width)
		l.Said = l.Said[:0]
	}
}

// last returns a new example that begins with the last rows of l, whose last token has been removed.
func (l *Example) last(rows int) *Example {
	from := max(0, len(l.Tokens)-rows)
	return &Example{Tokens: slices.Clone(l.Tokens[from:]), Taps: slices.Clone(l.Taps[from*l.Width:]), Width: l.Width}
}
