// From logits to candidates, and what the rank head says of them.

package specblock

import (
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/sample"
)

// task is a row of a sequence whose candidates are to be found; negative: all rows of the pass.
type task struct {
	s   *state
	row int
}

// rank finds the candidates of all rows looked at, and what the rank head says of them. Rows are
// shared among the workers. But where penalties look at the path a sequence is one task: its
// history follows one path at a time.
func (d *drafter) rank() {
	d.tasks = d.tasks[:0]
	for _, s := range d.live {
		if s.History != nil {
			d.tasks = append(d.tasks, task{s, -1})
			continue
		}
		for i := s.first; i < len(s.rows); i++ {
			d.tasks = append(d.tasks, task{s, i})
		}
	}
	d.features = d.described.Mat(len(d.from), Features)
	d.Pool.Run(len(d.tasks), (*ranking)(d))
	if !d.judged {
		return
	}
	scores := d.scored.Mat(len(d.from), RankBuckets)
	d.n.Rank(d.exec, d.states, d.features, scores, &d.bufs)
	for _, s := range d.live {
		for i := range s.rows[s.first:] {
			s.rows[s.first+i].judge(scores.Row(s.inPass+i), &d.n.RankOffset)
		}
	}
}

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

// Chosen is the bucket that the rank head's scores of a row choose, with a head's RankOffset.
func Chosen(scores []float32, offset *[RankBuckets]float32) int {
	best := 0
	for b, v := range scores[:RankBuckets] {
		if v+offset[b] > scores[best]+offset[best] {
			best = b
		}
	}
	return best
}

// mostRank bounds what the rank head may make of a logarithm.
const mostRank = 6

// ranking is the drafter as the pool's job.
type ranking drafter

func (d *ranking) Do(worker, i int) {
	t, sampler := &d.tasks[i], d.Samplers[worker]
	if t.row >= 0 {
		t.s.rank(sampler, t.row)
		return
	}
	for _, b := range t.s.blocks[t.s.fresh:] {
		t.s.rankBlock(sampler, &b)
	}
}

// rankBlock ranks a block slot by slot, under the history of each one's path.
func (s *state) rankBlock(sampler *sample.Sampler, b *block) {
	s.path = s.grown.Path(int(b.node), s.path[:0])
	for i, node := range s.path {
		s.path[i] = s.grown.Token[node]
	}
	pushed := 0
	for k := range b.slots {
		for ; pushed < len(s.path); pushed++ {
			s.History.Push(s.path[pushed])
		}
		s.rank(sampler, int(b.rows+k))
		if c := s.rows[b.rows+k].level; len(c) > 0 {
			s.path = append(s.path, c[0].Token)
		}
	}
	for range pushed {
		s.History.Pop()
	}
}

// rank finds the candidates of a row: the head's likeliest tokens, and the first in the race that
// the target's choice will be, with the noise of their position.
func (s *state) rank(sampler *sample.Sampler, number int) {
	d, r := s.d, &s.rows[number]
	sampler.Like(d.plain)
	r.top = r.output.Top(sampler, r.top[:0], 0, nil)
	if d.judged {
		s.describe(r, d.features.Row(s.inPass+number-s.first))
	}
	if !s.chosen && d.ranked <= FeatureLogits {
		r.level = append(r.level[:0], r.top[:min(len(r.top), d.ranked)]...)
	} else {
		sampler.Like(s.Sampler)
		depth := int(s.grown.Depth[s.blocks[r.block].node] + r.slot)
		r.level = r.level[:len(r.output.Top(sampler, r.level[:0:d.ranked], s.At+depth+1, s.History))]
	}
	if s.Warm > 0 && s.Text == nil {
		draft.CoupledChances(r.level, d.ranked)
	}
}

// describe computes what the rank head reads of a row's distribution. Of tokens that are not listed
// nothing is known.
func (s *state) describe(r *row, features []float32) {
	var top [FeatureLogits]float32
	var index [FeatureLogits]int32
	var beyond Beyond
	if s.d.n.RankFull {
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
