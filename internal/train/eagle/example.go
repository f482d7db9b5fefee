package eagle

import (
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/nn"
)

// example is texts of one length and the positions in them to train on. For each text, places lists
// the tokens after which a head learns the target's predictions; later is a subset of these, none
// near the end, from which the head goes on as it does in drafting.
type example struct {
	texts         [][]int32
	places, later [][]int
	noise         func(g nn.Mat, length int)
}

// part is texts [from, to) of an example.
func (l *example) part(from, to int) example {
	return example{l.texts[from:to], l.places[from:to], l.later[from:to], l.noise}
}

// rows is the number of rows that learn in a test step.
func (l *example) rows(step int) int {
	n, of := 0, l.places
	if step > 0 {
		of = l.later
	}
	for _, p := range of {
		n += len(p)
	}
	return n
}

// goal weighs what an EAGLE head's rows learn: distributions and, for EAGLE-2, also the target's states.
type goal struct {
	scale  []float32 // of one row, by test step
	hard   float32   // weight of the distributions
	states float32   // weight of the distance to the states
}

// gradient adds an example's gradient to that of the parameters, and returns the loss, whose weight
// is the example's share of the step.
func (h *Head) gradient(l *example, o goal) autograd.Loss {
	h.Tape.Reset()
	h.Tape.Attach()
	loss := h.loss(l, o)
	h.Tape.Backward()
	return loss
}

// loss runs an example's test steps: first the rows of the texts' entries, then, step by step, a
// row for the next token below some of them.
func (h *Head) loss(l *example, o goal) (total autograd.Loss) {
	length := len(l.texts[0])
	first := length
	for _, p := range l.places {
		first = min(first, p[0])
	}
	last, features, x := h.begin(l.texts, l.noise)
	h.soft.Temperature = 1
	h.Target.Distributions(&h.soft, last, len(l.texts), first, length-1, h.said.Says)

	for step, scale := range o.scale {
		q := h.question(l, step, first)
		switch {
		case len(q.tokens) == 0:
			return total
		case step == 0:
			rows := h.Exec.Mat(&h.asked, len(q.tokens), h.net.Hidden)
			h.Exec.Gather(x, q.from, rows)
			total.Add(h.answer(rows, features, &q, scale, o))
		default:
			x = h.grow(x, q.from, q.tokens)
			total.Add(h.answer(x, features, &q, scale, o))
		}
	}
	return total
}

// question is the rows of a test step that learn.
type question struct {
	tokens []int32 // of the rows
	// the rows' own numbers among the entries' rows; in later steps, their parents' numbers in the last pass
	from    []int32
	states  []int32 // rows of the features: the target's own after the row's token
	targets autograd.Targets
}

// question lists the rows that learn in a test step; first is the first place with a distribution.
func (h *Head) question(l *example, step, first int) (q question) {
	length := len(l.texts[0])
	h.soft.Row = h.soft.Row[:0]
	q.targets = autograd.Targets{Soft: &h.soft, Share: 1}
	of := l.places
	if step > 0 {
		of = l.later
	}
	for i, text := range l.texts {
		for _, p := range of[i] {
			if step <= 1 {
				q.from = append(q.from, int32(i*(length-1)+p-1))
			} else {
				q.from = append(q.from, int32(len(q.from))) // the same rows as in the step before
			}
			p += step
			q.tokens = append(q.tokens, text[p])
			q.targets.Token = append(q.targets.Token, h.said.Rows.Row(text[p+1]))
			h.soft.Row = append(h.soft.Row, int32(i*(length-1-first)+p-first))
			q.states = append(q.states, int32(i*length+p))
		}
	}
	return q
}

// answer is the loss of some rows, each scaled by scale.
func (h *Head) answer(x, features nn.Mat, q *question, scale float32, o goal) autograd.Loss {
	loss := h.Tape.CrossEntropy(h.net.Output(x), &h.net.Head, q.targets, scale*o.hard)
	loss.Sum *= float64(o.hard)
	if o.states > 0 {
		y := h.Exec.Mat(&h.wanted, x.Rows, x.Cols)
		h.Exec.Gather(features, q.states, y)
		loss.Sum += float64(o.states) * h.Tape.SmoothL1(x, y, scale*o.states).Sum
	}
	loss.Sum *= float64(scale)
	loss.Hard *= float64(scale)
	loss.Weight *= float64(scale)
	return loss
}
