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
		t.s.rank(sampler, i, d.pass.Logits(t.slot, i)[:d.vocab])
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
	c := sampler.Top(s.cands[i*k:i*k:(i+1)*k], logits, position, s.history)
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
	case s.warm > 0:
		t := s.sampler.Params().Temperature
		draft.CoupledChances(c, k, t, spread(t))
		s.sure[i] = exp(c[0].LogProb)
	default:
		s.sure[i] = exp(c[0].LogProb) // the softmax's: paper 002 §3.3's c(u)
	}
	s.count[i] = int32(len(c))
	if s.history != nil {
		for range s.nodes {
			s.history.Pop()
		}
	}
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

// spread says how far the draft model's logits are from the target's (draft.CoupledChances). Fitted to what grove's own target chose of
// its draft model's candidates, at temperatures from 0.3 to 1.3: hotter text is less like what either has learned.
func spread(temperature float32) float32 { return 0.4 + 0.37*temperature }

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
