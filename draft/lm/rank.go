// From logits to candidates with chances, on all workers.

package lm

import (
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/sample"
)

// task is some of the nodes that a sequence expands in this step.
type task struct {
	s        *state
	slot     int // the sequence's number in the pass
	from, to int
}

// rank fills in the candidates of all nodes expanded in this step, a node a task. Where penalties look at the
// path, a sequence is one task: its history follows one path at a time.
func (d *drafter) rank() {
	d.tasks = d.tasks[:0]
	for slot, s := range d.live {
		n := len(s.expand)
		s.cands = slices.Grow(s.cands[:0], n*d.ranked)[:n*d.ranked]
		s.count = slices.Grow(s.count[:0], n)[:n]
		s.sure = slices.Grow(s.sure[:0], n)[:n]
		for s.drawing && len(s.probs) < s.run.Len()-int(s.shift) {
			s.probs = append(s.probs, make([]float32, d.target))
		}
		if s.history != nil {
			d.tasks = append(d.tasks, task{s, slot, 0, n})
			continue
		}
		for i := range n {
			d.tasks = append(d.tasks, task{s, slot, i, i + 1})
		}
	}
	d.m.Pool().Run(len(d.tasks), (*ranking)(d))
}

// ranking is the drafter as the pool's job.
type ranking drafter

func (d *ranking) Do(worker, number int) {
	t := &d.tasks[number]
	sampler := d.workers[worker]
	sampler.Like(t.s.sampler)
	for i := t.from; i < t.to; i++ {
		t.s.rank(sampler, i, d.pass.Logits(t.slot, i))
	}
}

// rank is the i-th expanded node's part.
func (s *state) rank(sampler *sample.Sampler, i int, logits []float32) {
	node, k := s.expand[i], s.d.ranked
	if s.history != nil {
		s.nodes = s.tree.Path(int(node), s.nodes[:0])
		for _, n := range s.nodes {
			s.history.Push(s.tree.Token[n])
		}
	}
	position := s.position(node) + 1 // of the node's children
	if s.drawing {
		// A stream of its own for every node that is ever drawn below: the root's position tells trees apart.
		position = s.rootAt*maxNodes + int(s.row[node]-s.shift)
	}
	c := s.cands[i*k : i*k : (i+1)*k]
	if s.words != nil {
		l := s.lists[i]
		c = sampler.TopOf(c, logits[:l.Len()], l.Tokens(), l.LogOutside(logits, s.sampler.Params().Temperature), position, s.history)
	} else {
		logits = logits[:s.d.vocab]
		c = sampler.Top(c, logits, position, s.history)
	}
	switch {
	case s.drawing:
		p := s.probs[s.row[node]-s.shift]
		clear(p[s.d.vocab:])
		sampler.Probs(p[:s.d.vocab], logits, s.history)
		s.sure[i] = p[max(simd.ArgMax(p), 0)]
		for len(c) > 0 && !(p[c[len(c)-1].Token] > 0) { // at temperature 0 only one can be drawn
			c = c[:len(c)-1]
		}
		drawnChances(c)
	default:
		s.estimate(c)
	}
	if !s.drawing {
		c = s.asides.Weigh(c, &s.tree, int(node))
		if s.sure[i] = 0; len(c) > 0 { // of a shortlist perhaps no token can be drawn
			s.sure[i] = exp(c[0].LogProb) // where probabilities are raw at temperature 0 the softmax's: paper 002 §3.3's c(u)
		}
	}
	s.count[i] = int32(len(c))
	if s.history != nil {
		for range s.nodes {
			s.history.Pop()
		}
	}
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

// estimate makes chances of candidates' scores.
func (s *state) estimate(c []sample.Candidate) {
	switch k, t := s.d.ranked, s.sampler.Params().Temperature; {
	case s.warm > 0 && s.d.limits.raw:
		draft.CoupledChances(c, k, t, spread(t))
	case s.warm > 0:
		draft.LeaningChances(c, k, t, spread(t), lean)
	case !s.d.limits.raw:
		draft.LeaningChances(c, k, 1, spreadAtZero, lean)
	}
}

// spread says how far the draft model's logits are from the target's, and lean how much it errs towards unlikely tokens (see package
// draft). Fitted to what grove's own target chose of its draft model's candidates, at temperatures from 0.3 to 1.3: hotter
// text is less like what either has learned. At temperature 0 the softmax's probabilities take the scores' place.
func spread(temperature float32) float32 { return 0.4 + 0.37*temperature }

const (
	spreadAtZero = 0.6
	lean         = 1.8
)

// Raw is an option of all shapes.
type Raw struct {
	Raw bool `draft:"raw" help:"take the draft model at its word: do not sharpen its probabilities, nor learn from what the target said beside its path"`
}

// hearing is one of the asides that a Commit brought; see draft.Asides.
type hearing struct {
	s      *state
	r      *draft.Rows
	number int
}

// hearings is the drafter as the pool's job.
type hearings drafter

func (d *hearings) Do(worker, number int) {
	h := &d.heard[number]
	sampler := d.workers[worker]
	sampler.Like(h.s.sampler)
	h.s.asides.Hear(h.number, h.r, sampler, d.vocab, h.s.history)
}

// drawnChances turns the probabilities with which candidates were drawn into estimates of being accepted by rejection
// sampling: a token that was sure to be drawn nearly always is; one of many equal ones about as often as two
// models' distributions overlap; and those after the first only where the others were rejected, which shows that the
// models disagree.
func drawnChances(c []sample.Candidate) {
	rest, share := 1.0, 1.0
	for i := range c {
		a := share * (overlap + (1-overlap)*math.Exp(float64(c[i].LogProb)))
		c[i].LogProb = float32(math.Log(rest * a))
		rest, share = max(rest*(1-a), 1e-6), later
	}
}

const (
	overlap = 0.4
	later   = 0.4
)
