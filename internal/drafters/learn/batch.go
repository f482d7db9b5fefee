package learn

import (
	"math/rand/v2"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/nn"
)

// Batch has rounds of some examples, to be drafted again.
type Batch struct {
	Examples []*Example
	Rounds   [][]int // of each example: numbers of its rounds, ascending

	learns bool           // it is not scored
	last   bool           // only the last part learns
	tape   *autograd.Tape // nil: nothing is recorded
}

// Draw draws so many rounds from the examples, as evenly as possible. Those of an example are
// consecutive, and only the part of its text that leads up to them is kept.
func Draw(rng *rand.Rand, examples []*Example, rounds int) *Batch {
	b := new(Batch)
	for _, i := range rng.Perm(len(examples)) {
		if rounds == 0 {
			break
		}
		l := examples[i]
		n := min(len(l.Rounds), rounds)
		if n == 0 {
			continue
		}
		from := rng.IntN(len(l.Rounds) - n + 1)
		list := make([]int, n)
		for k := range list {
			list[k] = k
		}
		b.Examples, b.Rounds = append(b.Examples, l.around(from, from+n)), append(b.Rounds, list)
		rounds -= n
	}
	return b
}

// leadUp is how many rows of a text are kept before the first round to be drafted again.
const leadUp = 96

// around returns the part of an example around rounds [from, to).
func (l *Example) around(from, to int) *Example {
	last := l.Rounds[to-1]
	first, end := max(l.Rounds[from].Root-leadUp, 0), min(last.Root+last.Looked+1, len(l.Tokens))
	p := &Example{Tokens: l.Tokens[first:end], Taps: l.Taps[first*l.Width : (end-1)*l.Width],
		Width: l.Width, Drafted: l.Drafted}
	p.From = max(l.From-first, 0)
	p.Said = l.Said[max(first-l.From, 0)*Places : (end-1-l.From)*Places]
	for _, r := range l.Rounds[from:to] {
		r.Root -= first
		p.Rounds = append(p.Rounds, r)
	}
	return p
}

// Len returns the number of rounds.
func (b *Batch) Len() (n int) {
	for _, r := range b.Rounds {
		n += len(r)
	}
	return n
}

// Each calls f for every round.
func (b *Batch) Each(f func(example, round int, l *Example, r *Round)) {
	for i, l := range b.Examples {
		for _, n := range b.Rounds[i] {
			f(i, n, l, &l.Rounds[n])
		}
	}
}

// Taps returns the taps of all examples' rows, one example after the other.
func (b *Batch) Taps() nn.Mat {
	rows := 0
	for _, l := range b.Examples {
		rows += len(l.Taps) / l.Width
	}
	taps, at := nn.NewMat(rows, b.Examples[0].Width), 0
	for _, l := range b.Examples {
		at += copy(taps.Data[at:], l.Taps)
	}
	return taps
}

// Learns reports whether the batch is learned, not scored: rows may then stand for a tree's other branches.
func (b *Batch) Learns() bool { return b.learns }

// Alone reports whether only the last part learns.
func (b *Batch) Alone() bool { return b.tape != nil && b.last }

// Part is called by a Head's Run with the states that enter its last part, and returns them for
// that part to read. If only the last part learns, the tape begins here.
func (b *Batch) Part(e *nn.Exec, x nn.Mat) nn.Mat {
	if !b.Alone() {
		return x
	}
	b.tape.Attach()
	in := e.Mat(nil, x.Rows, x.Cols)
	for i := range x.Rows {
		copy(in.Row(i), x.Row(i))
	}
	return in
}
