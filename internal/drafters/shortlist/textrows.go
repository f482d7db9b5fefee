package shortlist

import (
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/nn/output"
)

// textRows is rows of a head for the tokens that came up last in a sequence, followed by rows for
// the tokens that noise may choose next (noiserows.go). If a token comes up and no row is free, it
// takes the row of the token that came up longest ago. Rows are named at once and filled later by
// several workers: a row is scattered over a panel, and copying it takes a microsecond.
type textRows struct {
	c    *Context
	head *output.OrderedHead
	n    int // number of rows of tokens that came up

	// These rows in the order in which they came up, the latest first, as a ring through the row with
	// index c.extra.
	before, after []int32

	noise [ahead]noiseBlock

	stale    []bool  // of each row: it is named but not filled
	anyStale bool    // there may be a stale row
	todo     []int32 // those that the current tasks fill
}

func newTextRows(c *Context) *textRows {
	size := c.extra + ahead*noiseRows
	none := slices.Repeat([]int32{output.NoToken}, size)
	o := &textRows{c: c, before: make([]int32, c.extra+1), after: make([]int32, c.extra+1), stale: make([]bool, size)}
	o.head, _ = output.NewOrderedHead(c.pool, c.head.TokenHead, none)
	o.clear()
	return o
}

// clear forgets all tokens.
func (o *textRows) clear() {
	for i := o.n - 1; i >= 0; i-- {
		o.head.Unset(i)
	}
	end := o.c.extra
	o.n = 0
	o.before[end] = int32(end)
	o.after[end] = int32(end)
	o.dropNoiseRows()
	clear(o.stale)
	o.anyStale = false
}

// panels returns the number of panels in use for tokens that came up.
func (o *textRows) panels() int { return (o.n + gemm.Panel - 1) / gemm.Panel }

// add makes a token the latest, and reports whether it was not yet among them.
func (o *textRows) add(token int32) (fresh bool) {
	end := o.c.extra
	row := o.head.Row(token)
	fresh = row < 0 || row >= end
	switch {
	case !fresh:
		o.unlink(row)
	case o.n < end:
		row = o.n
		o.n++
	default:
		row = int(o.before[end])
		o.unlink(row)
	}
	if fresh {
		o.name(row, token)
	}
	next := o.after[end]
	o.before[row], o.after[row] = int32(end), next
	o.before[next], o.after[end] = int32(row), int32(row)
	return fresh
}

// name assigns a row to a token.
func (o *textRows) name(row int, token int32) {
	o.head.Set(row, token)
	o.stale[row], o.anyStale = true, true
}

func (o *textRows) unlink(row int) {
	o.after[o.before[row]], o.before[o.after[row]] = o.after[row], o.before[row]
}

// fillRows is the number of rows that a task fills.
const fillRows = 8

// fills returns the number of tasks that fill the stale rows.
func (o *textRows) fills() int {
	o.todo = o.todo[:0]
	if o.anyStale {
		for row, stale := range o.stale {
			if stale {
				o.todo = append(o.todo, int32(row))
			}
		}
		o.anyStale = len(o.todo) > 0 // until they are filled
	}
	return (len(o.todo) + fillRows - 1) / fillRows
}

// Do runs one of these tasks.
func (o *textRows) Do(_, task int) {
	for _, row := range o.todo[task*fillRows : min((task+1)*fillRows, len(o.todo))] {
		o.head.Fill(int(row))
		o.stale[row] = false
	}
}
