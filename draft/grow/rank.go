// From logits to candidates with chances, on all workers.

package grow

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
func (d *Drafter) rank() {
	d.tasks = d.tasks[:0]
	for slot, s := range d.live {
		n := len(s.expand)
		s.cands = slices.Grow(s.cands[:0], n*d.ranked)[:n*d.ranked]
		s.count = slices.Grow(s.count[:0], n)[:n]
		s.sure = slices.Grow(s.sure[:0], n)[:n]
		rows := s.run.Len() - int(s.shift)
		s.own = slices.Grow(s.own, rows*d.ranked-len(s.own))[:rows*d.ranked]
		s.ownCount = slices.Grow(s.ownCount, rows-len(s.ownCount))[:rows]
		for s.drawing && len(s.probs) < rows {
			s.probs = append(s.probs, make([]float32, d.Target))
		}
		if s.history != nil {
			d.tasks = append(d.tasks, task{s, slot, 0, n})
			continue
		}
		for i := range n {
			d.tasks = append(d.tasks, task{s, slot, i, i + 1})
		}
	}
	d.Pool.Run(len(d.tasks), (*ranking)(d))
}

// ranking is the drafter as the pool's job.
type ranking Drafter

func (d *ranking) Do(worker, number int) {
	t := &d.tasks[number]
	sampler := d.workers[worker]
	sampler.Like(t.s.sampler)
	for i := t.from; i < t.to; i++ {
		logits := d.Model.Logits(t.slot, i)
		if t.s.drawing && d.Tokens != nil {
			logits = (*Drafter)(d).wide(worker, logits)
		}
		t.s.rank(sampler, i, logits, &d.judges[worker])
	}
}

// rank is the i-th expanded node's part.
func (s *state) rank(sampler *sample.Sampler, i int, logits []float32, m *judging) {
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
		position = s.at*maxNodes + int(s.row[node]-s.shift)
	}
	c := s.cands[i*k : i*k : (i+1)*k]
	switch {
	case s.words != nil:
		l := s.lists[i]
		c = sampler.TopOf(c, logits[:l.Len()], l.Tokens(), l.LogOutside(logits, s.sampler.Params().Temperature), position, s.history)
	case s.d.Tokens != nil && !s.drawing:
		c = sampler.TopOf(c, logits, s.d.Tokens, math.Inf(-1), position, s.history)
	default:
		logits = logits[:s.d.Vocab]
		c = sampler.Top(c, logits, position, s.history)
	}
	row := int(s.row[node] - s.shift)
	s.ownCount[row] = int32(copy(s.own[row*k:(row+1)*k], c))
	switch {
	case s.known != nil:
		m.logits, m.list = logits, nil
		if s.words != nil {
			m.list = s.lists[i]
		}
		s.known.judge(s, node, s.own[row*k:][:len(c)], m)
	case s.drawing:
		p := s.probs[row]
		clear(p[s.d.Vocab:])
		sampler.Probs(p[:s.d.Vocab], logits, s.history)
		s.sure[i] = p[max(simd.ArgMax(p), 0)]
		for len(c) > 0 && !(p[c[len(c)-1].Token] > 0) { // at temperature 0 only one can be drawn
			c = c[:len(c)-1]
		}
		drawnChances(c)
	default:
		s.estimate(c)
	}
	if !s.drawing && s.known == nil {
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

// wide gives the logits of a draft vocabulary their places in the target's.
func (d *Drafter) wide(worker int, logits []float32) []float32 {
	all := d.spread[worker]
	for i := range all {
		all[i] = negInf
	}
	for i, token := range d.Tokens {
		all[token] = logits[i]
	}
	return all
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

// Fit says what a model's candidates are worth: how its logits differ from the target's. It is fitted to what a target chose of them.
type Fit struct {
	Spread, Warmer float32 // how far they are apart above temperature 0: Spread + Warmer·temperature; see draft.CoupledChances
	AtZero         float32 // at temperature 0
	Lean           float32 // how much the model errs towards unlikely tokens; see draft.LeaningChances
}

// estimate makes chances of candidates' scores. At temperature 0 the softmax's probabilities are chances already, if the drafter is
// taken at its word.
func (s *state) estimate(c []sample.Candidate) {
	f, k, t := &s.d.Fit, s.d.ranked, s.sampler.Params().Temperature
	spread := f.Spread + f.Warmer*t
	switch {
	case s.warm > 0 && s.d.limits.raw:
		draft.CoupledChances(c, k, t, spread)
	case s.warm > 0:
		draft.LeaningChances(c, k, t, spread, f.Lean)
	case !s.d.limits.raw:
		draft.LeaningChances(c, k, 1, f.AtZero, f.Lean)
	}
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
