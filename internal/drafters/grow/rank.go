// Ranking: from logits to candidates with chances, on all workers.

package grow

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/sample"
)

// task is some of the nodes that a sequence expands in this step.
type task struct {
	s        *state
	slot     int // the sequence's number in the pass
	from, to int
}

// rank fills in the candidates of all nodes expanded in this step, one task per node. If penalties
// depend on the path, a whole sequence is one task: its history follows one path at a time. So it is
// if a sampler temporarily changes logits that several nodes share.
func (d *Drafter) rank() {
	_, shared := d.Model.(Blocks)
	d.tasks = d.tasks[:0]
	for slot, s := range d.live {
		n := len(s.expand)
		s.cands = slices.Grow(s.cands[:0], n*d.ranked)[:n*d.ranked]
		s.count = slices.Grow(s.count[:0], n)[:n]
		s.confidence = slices.Grow(s.confidence[:0], n)[:n]
		if s.Text != nil {
			s.Text.Keep(s.tree.Len(), s.tree.Len())
		}
		rows := s.run.Len() - int(s.shift)
		s.rows = slices.Grow(s.rows, rows*d.ranked-len(s.rows))[:rows*d.ranked]
		s.rowCount = slices.Grow(s.rowCount, rows-len(s.rowCount))[:rows]
		for s.drawing && len(s.probs) < rows {
			s.probs = append(s.probs, make([]float32, d.Target))
		}
		if s.History != nil || shared && len(s.Sampler.Params().LogitBias) > 0 {
			d.tasks = append(d.tasks, task{s, slot, 0, n})
			continue
		}
		for i := range n {
			d.tasks = append(d.tasks, task{s, slot, i, i + 1})
		}
	}
	d.Pool.Run(len(d.tasks), (*ranking)(d))
}

// ranking is the drafter as a job of the pool.
type ranking Drafter

func (d *ranking) Do(worker, number int) {
	t := &d.tasks[number]
	sampler := d.Samplers[worker]
	lower.SetLike(sampler, t.s.Sampler)
	for i := t.from; i < t.to; i++ {
		logits := d.Model.Logits(t.slot, i)
		if t.s.drawing && d.Tokens != nil {
			logits = (*Drafter)(d).wide(worker, logits)
		}
		t.s.rank(sampler, i, logits, &d.rankers[worker])
	}
}

// rank ranks the candidates of the i-th expanded node.
func (s *state) rank(sampler *sample.Sampler, i int, logits []float32, m *ranker) {
	node, k := s.expand[i], s.d.ranked
	if s.History != nil {
		s.nodes = s.tree.Path(int(node), s.nodes[:0])
		for _, n := range s.nodes {
			s.History.Push(s.tree.Token[n])
		}
	}
	position := s.position(node) + 1 // of the node's children
	if s.drawing {
		// Every node whose children are ever drawn has a random stream of its own: the root's position
		// distinguishes trees.
		position = treebuild.DrawPosition(s.At, int(s.row[node]-s.shift))
	}
	c := s.cands[i*k : i*k : i*k+s.d.asked]
	m.output.Logits, m.output.List = logits, nil
	switch {
	case len(s.Words) > 0:
		m.output.List = s.lists[i]
		c = m.output.Top(sampler, c, position, s.History)
	case s.d.Tokens != nil && !s.drawing:
		c = m.output.Top(sampler, c, position, s.History)
	default:
		logits = logits[:s.d.Vocab]
		c = sampler.Top(c, logits, position, s.History)
	}
	row := int(s.row[node] - s.shift)
	s.rowCount[row] = int32(copy(s.rows[row*k:(row+1)*k], c))
	s.confidence[i] = 0
	for _, x := range c { // perhaps no token of a shortlist can be drawn
		s.confidence[i] = max(s.confidence[i], exp(x.LogProb)) // DynaTree's c(u), §3.3
	}
	switch {
	case s.Text != nil:
		c = m.rank(s, node, s.cands[i*k:i*k:(i+1)*k], s.rows[row*k:][:min(len(c), textrank.RowMost)])
		s.confidence[i] = 0
		if len(c) > 0 {
			s.confidence[i] = exp(c[0].LogProb)
		}
	case s.drawing:
		p := s.probs[row]
		clear(p[s.d.Vocab:])
		sampler.Probs(p[:s.d.Vocab], logits, s.History)
		s.confidence[i] = p[max(simd.ArgMax(p), 0)]
		for len(c) > 0 && !(p[c[len(c)-1].Token] > 0) { // at temperature 0 only one can be drawn
			c = c[:len(c)-1]
		}
		treebuild.DrawnChances(c)
	case s.Warm > 0:
		treebuild.CoupledChances(c, s.d.asked, s.Sampler.Params().Temperature)
	}
	s.count[i] = int32(len(c))
	if s.History != nil {
		for range s.nodes {
			s.History.Pop()
		}
	}
}

// wide spreads the logits of a draft vocabulary to their places in the target's.
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
