// Rows that predict the next token: their logits, over all or part of the vocabulary (package
// shortlist), their candidates, and what the rank head says about them.

package specblock

import (
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/sample"
)

// row is the head's result in a slot of a block. It is valid until the next proposal.
type row struct {
	s     *state
	at    int32 // its number in the layout
	slot  int32
	last  bool  // it is the last of its block
	pass  int32 // passes before its own
	depth int32 // of the nodes that it gives children

	// its likeliest tokens, before noise, penalties and everything else; LogProb is that of the head
	top    []sample.Candidate
	level  []sample.Candidate // the first ones with the noise of the target's choice
	state  []float32          // the condition of a block that starts from the row
	output textrank.Output    // its logits, as the head computed them
	bucket int8               // the rank head's choice
	rank   [11]float32        // its correction of log-probabilities, by place: see textrank.Row
	cache  textrank.RowCache
}

// passRows has the memory of one pass's rows.
type passRows struct {
	states, features, scores nn.Buffer
	logits                   output.Logits
}

// open adds the row of a block's slot, number at of the layout.
func (s *state) open(b *start, slot, at int32) {
	n := len(s.rows)
	s.rows = slices.Grow(s.rows, 1)[:n+1] // in the memory of earlier proposals' rows
	r := &s.rows[n]
	if r.top == nil {
		r.top, r.level = make([]sample.Candidate, 0, FeatureLogits), make([]sample.Candidate, 0, s.d.ranked)
	}
	r.s = s
	r.at = at
	r.slot = slot
	r.last = slot == b.slots-1
	r.pass = int32(s.passes)
	r.depth = s.grown.Depth[b.node] + slot
	r.cache.Reset()
}

// look takes the rows of x in d.from as the fresh rows, and computes their logits, over each one's
// shortlist if there is a method.
func (d *drafter) look(x nn.Mat) {
	if d.number == len(d.passes) {
		d.passes = append(d.passes, new(passRows))
	}
	p := d.passes[d.number]
	d.states = p.states.Mat(len(d.from), d.n.Hidden)
	d.exec.Gather(x, d.from, d.states)
	if len(d.Methods) > 0 {
		d.queries = d.queries[:0]
		for _, r := range d.fresh {
			d.queries = append(d.queries, shortlist.Query{State: r.s.Words[0], Step: int(r.depth),
				Token: r.s.layout.Tree.Token[r.at]})
		}
		d.lists = slices.Grow(d.lists[:0], len(d.queries))[:len(d.queries)]
		d.Methods[0].Choose(d.queries, d.lists)
	}
	p.logits.Reset()
	for i, r := range d.fresh {
		r.output = textrank.Output{Tokens: d.n.Tokens, Places: d.places}
		var listed *output.Shortlist
		if len(d.Methods) > 0 {
			d.Stats.Row(d.lists[i])
			r.output.List, listed = d.lists[i], &d.lists[i].Shortlist
		}
		p.logits.Add(i, listed)
	}
	p.logits.Run(d.exec, d.states, &d.n.Norm, &d.n.Head)
	for i, r := range d.fresh {
		r.state, r.output.Logits = d.states.Row(i), p.logits.Row(i)
	}
}

// rank finds the candidates of all fresh rows, and what the rank head says about them. Penalties are
// those of the text up to the root: the tokens in between are not yet known.
func (d *drafter) rank() {
	p := d.passes[d.number]
	d.features = p.features.Mat(len(d.fresh), Features)
	for _, s := range d.live {
		s.History.Push(s.root)
	}
	d.Pool.Run(len(d.fresh), (*ranking)(d))
	for _, s := range d.live {
		s.History.Pop()
	}
	if !d.judged {
		return
	}
	scores := p.scores.Mat(len(d.fresh), RankBuckets)
	d.n.Rank(d.exec, d.states, d.features, scores, &d.bufs)
	for i, r := range d.fresh {
		r.judge(scores.Row(i), &d.n.RankOffset)
	}
}

// ranking is the drafter as a job of the pool.
type ranking drafter

// Do finds the candidates of a row: the head's likeliest tokens, and the first ones with their
// position's noise, which the target's choice will use.
func (d *ranking) Do(worker, i int) {
	r, sampler := d.fresh[i], d.Samplers[worker]
	s := r.s
	lower.SetLike(sampler, d.plain)
	r.top = r.output.Top(sampler, r.top[:0], 0, nil)
	if d.judged {
		d.describe(r, d.features.Row(i))
	}
	if p := s.Sampler.Params(); s.Warm == 0 && s.History == nil && len(p.LogitBias) == 0 && d.ranked <= FeatureLogits {
		r.level = append(r.level[:0], r.top[:min(len(r.top), d.ranked)]...)
	} else {
		lower.SetLike(sampler, s.Sampler)
		r.level = r.output.Top(sampler, r.level[:0], s.At+int(r.depth)+1, s.History)
	}
	if s.Warm > 0 && s.Text == nil {
		treebuild.CoupledChances(r.level, d.ranked, s.Sampler.Params().Temperature)
	}
}

// describe computes the rank head's features of a row's distribution. Nothing is known about tokens
// that are not listed.
func (d *ranking) describe(r *row, features []float32) {
	var top [FeatureLogits]float32
	var index [FeatureLogits]int32
	var beyond Beyond
	if d.n.RankFull {
		logits := r.output.Logits
		if l := r.output.List; l != nil {
			logits = logits[:l.Len()]
		}
		beyond = BeyondOf(logits, top[:simd.TopK(logits, index[:], top[:])])
	}
	for i, c := range r.top {
		top[i] = float32(c.Score)
	}
	FeaturesOf(top[:len(r.top)], beyond, features)
}

// mostRank limits the rank head's correction of a logarithm.
const mostRank = 6

// judge takes in the rank head's scores of a row's buckets.
func (r *row) judge(scores []float32, offset *[RankBuckets]float32) {
	r.bucket = int8(Chosen(scores, offset))
	most, sum := slices.Max(scores), 0.0
	var mass [RankBuckets]float64 // of each bucket as the head has it
	mass[RankBuckets-1] = 1
	for i, c := range r.top {
		if b := BucketOf(i + 1); b < RankBuckets-1 {
			p := math.Exp(float64(c.LogProb))
			mass[b] += p
			mass[RankBuckets-1] -= p
		}
	}
	for _, v := range scores {
		sum += math.Exp(float64(v - most))
	}
	for place := range r.rank {
		b := BucketOf(place + 1)
		more := float64(scores[b]-most) - math.Log(sum) - math.Log(max(mass[b], 1e-6))
		r.rank[place] = float32(min(max(more, -mostRank), mostRank))
	}
}

// compare counts how often the lists had the target's choices along its path.
func (s *state) compare(r *draft.Rows) {
	if len(s.Words) == 0 || r.Next < 0 {
		return
	}
	for i := range r.Tokens {
		next := r.Next
		if i+1 < len(r.Tokens) {
			next = r.Tokens[i+1]
		}
		if x := s.after(r.Tokens[1 : i+1]); x != nil {
			s.d.Stats.Choice(x.output.List, next)
		}
	}
}
