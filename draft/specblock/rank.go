// From logits to candidates, and what the rank head says of them.

package specblock

import (
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/internal/textrank"
)

// task is some of a sequence's rows, whose candidates are to be found: of the blocks of starts
// [from, to) one slot, or all where slot is negative.
type task struct {
	s        *state
	from, to int
	slot     int
}

// rank finds the candidates of all rows looked at, and what the rank head says of them. Rows are
// shared among the workers. But where penalties look at the path a sequence is one task: its
// history follows one path at a time.
func (d *drafter) rank() {
	d.tasks = d.tasks[:0]
	rows := 0
	for _, s := range d.live {
		s.first = int(s.starts[0].rows)
		n := len(s.rows) - s.first
		rows += n
		s.tops = slices.Grow(s.tops, n*FeatureLogits)[:len(s.rows)*FeatureLogits]
		size := max(d.ranked, textrank.CandidatesMost)
		s.cands = slices.Grow(s.cands, n*size)[:len(s.rows)*size]
		if s.history != nil {
			d.tasks = append(d.tasks, task{s, 0, len(s.starts), -1})
			continue
		}
		for i := range s.starts {
			for k := range s.starts[i].slots {
				d.tasks = append(d.tasks, task{s, i, i + 1, int(k)})
			}
		}
	}
	d.pool.Run(len(d.tasks), (*ranking)(d))
	if d.n.RankWidth == 0 || d.options.Tree == Ranked && !unequal(d.widths) {
		return
	}
	features, scores := d.described.Mat(rows, Features), d.scored.Mat(rows, RankBuckets)
	at := 0
	for _, s := range d.live {
		for i := s.first; i < len(s.rows); i++ {
			var logits [FeatureLogits]float32
			for j, c := range s.rows[i].top {
				logits[j] = float32(c.Score)
			}
			FeaturesOf(logits[:len(s.rows[i].top)], s.rows[i].beyond, features.Row(at))
			at++
		}
	}
	d.n.Rank(d.exec, d.states, features, scores, &d.bufs)
	at = 0
	for _, s := range d.live {
		for i := s.first; i < len(s.rows); i++ {
			s.rows[i].judge(scores.Row(at), &d.n.RankOffset)
			at++
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

func (d *ranking) Do(number, i int) {
	t, w := &d.tasks[i], &d.workers[number]
	if t.slot >= 0 {
		t.s.rank(w, &t.s.starts[t.from], t.slot)
		return
	}
	for i := t.from; i < t.to; i++ {
		t.s.rankBlock(w, &t.s.starts[i])
	}
}

// rankBlock ranks a block slot by slot, under the history of each one's path.
func (s *state) rankBlock(w *worker, b *start) {
	w.path = s.grown.Path(int(b.node), w.path[:0])
	pushed := 0
	for _, node := range w.path {
		s.history.Push(s.grown.Token[node])
		pushed++
	}
	for k := range b.slots {
		s.rank(w, b, int(k))
		if c := s.rows[b.rows+k].level; k < b.slots-1 && len(c) > 0 {
			s.history.Push(c[0].Token)
			pushed++
		}
	}
	for range pushed {
		s.history.Pop()
	}
}

// rank finds the candidates of a slot of a block: the head's likeliest tokens, and the first in the
// race that the target's choice will be, with the noise of their position.
func (s *state) rank(w *worker, b *start, k int) {
	d, number := s.d, int(b.rows)+k
	r := &s.rows[number]
	w.sampler.Like(d.plain)
	r.top = r.output.Top(w.sampler, s.tops[number*FeatureLogits:number*FeatureLogits:(number+1)*FeatureLogits], 0, nil)
	if d.n.RankFull {
		r.beyond = w.beyond(r)
	}
	size := max(d.ranked, textrank.CandidatesMost)
	c := s.cands[number*size : number*size : (number+1)*size]
	if !s.chosen && d.ranked <= FeatureLogits {
		c = append(c, r.top[:min(len(r.top), d.ranked)]...)
	} else {
		w.sampler.Like(s.sampler)
		c = r.output.Top(w.sampler, c[:0:d.ranked], s.at+int(s.grown.Depth[b.node])+1+k, s.history)
		c = s.cands[number*size : number*size+len(c) : (number+1)*size]
	}
	if s.warm > 0 && s.text == nil {
		draft.CoupledChances(c, d.ranked)
	}
	r.level = c
}

// beyond is what a row's other logits add to the distribution of its likeliest tokens. Of tokens
// that are not listed nothing is known.
func (w *worker) beyond(r *row) Beyond {
	logits := r.output.Logits
	if l := r.output.List; l != nil {
		logits = logits[:l.Len()]
	}
	return BeyondOf(logits, w.top[:simd.TopK(logits, w.index[:], w.top[:])])
}
