package specblock

import (
	"math"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// said compares a row's prediction with the text and the target.
type said struct {
	here  bool // the text has the token that the row has to predict
	valid bool // and all rows before it in its block are right: m of equation 5
	right bool // its likeliest token is the text's
	rank  int  // of the target's likeliest token among the row's, from 1

	features [specblock.Features]float32
}

// judging holds judge's buffers.
type judging struct {
	exec        *nn.Exec // has no tape
	logits      nn.Buffer
	rows, token []int32                            // rows is never nil, which would mean all
	top         [][specblock.FeatureLogits]float32 // per worker
	index       [][specblock.FeatureLogits]int32
}

func newJudging(pool *par.Pool) judging {
	n := pool.Threads()
	return judging{exec: nn.NewExec(pool), rows: []int32{}, top: make([][specblock.FeatureLogits]float32, n),
		index: make([][specblock.FeatureLogits]int32, n)}
}

// judge computes said for the rows of a round's blocks. No tape records it.
func (h *Head) judge(r *round) {
	j, n := &h.judging, h.net
	j.rows = j.rows[:0]
	for _, b := range r.blocks {
		for k := range n.Block {
			j.rows = append(j.rows, int32(b.row+k))
		}
	}
	r.said = append(r.said[:0], make([]said, len(j.rows))...)
	rows := nn.Source{X: r.states, At: j.rows, Norm: &n.Norm}
	train.EachLogits(j.exec, &j.logits, rows, &n.Head, func(worker, i int, logits []float32) {
		b, k := r.blocks[i/n.Block], i%n.Block
		if place := b.at + k; place < len(h.texts[b.text])-1 {
			h.say(&r.said[i], worker, logits, h.texts[b.text][place+1], h.soft.Best(h.distribution(b.text, place)))
		}
	})
	for i := range r.said {
		s := &r.said[i]
		s.valid = s.here && (i%n.Block == 0 || r.said[i-1].valid && r.said[i-1].right)
	}
}

// valid is the number of valid rows in a block.
func valid(block []said) (n int) {
	for i := range block {
		if block[i].valid {
			n++
		}
	}
	return n
}

// distribution is the index of the target's distribution after the token at a place of a text.
func (h *Head) distribution(text, place int) int {
	return text*(len(h.texts[text])-1-h.first) + place - h.first
}

// say judges a row by its logits. token is the text's; best is the output's row for the token that
// the target finds likeliest.
func (h *Head) say(s *said, worker int, logits []float32, token, best int32) {
	j := &h.judging
	top, index := j.top[worker][:], j.index[worker][:]
	n := simd.TopK(logits, index, top)
	s.here = true
	s.right = index[0] == h.outputs.Rows.Row(token)
	s.rank = 1
	for _, l := range logits {
		if l > logits[best] {
			s.rank++
		}
	}
	var beyond specblock.Beyond
	if h.net.RankFull {
		beyond = specblock.BeyondOf(logits, top[:n])
	}
	specblock.FeaturesOf(top[:n], beyond, s.features[:])
}

// weighting determines which rows are trained, and with which weights.
type weighting struct {
	decay      float64 // row k of a block has the weight decay^k
	everywhere bool    // train rows after a wrong one too: no valid-prefix mask
	onPath     bool    // no block starts from a row after a wrong one
	rank       bool    // train the rank head too
	balance    float64 // see learnRanks
	placeMeans bool    // each place of a block contributes the mean of its rows
}

// weigh lists the rows of a round that are trained, and their weights: decay^k over the number of
// blocks or, with placeMeans, over the number of trained rows at place k (equation 6).
func (t *weighting) weigh(block int, all []said) (rows []int32, weight []float32) {
	count := make([]int, block)
	for i := range all {
		if all[i].valid || t.everywhere && all[i].here {
			rows = append(rows, int32(i))
			count[i%block]++
		}
	}
	for _, i := range rows {
		k, n := int(i)%block, len(all)/block
		if t.placeMeans {
			n = count[k]
		}
		weight = append(weight, float32(math.Pow(t.decay, float64(k))/float64(n)))
	}
	return rows, weight
}

// gradient runs rounds of blocks on some texts of one length, and adds scale times the gradient of
// the rounds' losses to that of the parameters.
func (h *Head) gradient(texts [][]int32, starts [][]start, rounds int, t weighting, scale float32) (autograd.Loss, error) {
	h.Tape.Reset()
	h.Tape.Attach()
	if err := h.forward(texts, starts, rounds, t.onPath); err != nil {
		return autograd.Loss{}, err
	}
	var total autograd.Loss
	for _, r := range h.rounds[:rounds] {
		if len(r.blocks) == 0 {
			continue
		}
		rows, weight := t.weigh(h.net.Block, r.said)
		x := h.statesOf(r, rows)
		total.Add(h.loss(r, rows, x, weight, scale))
		if t.rank {
			h.learnRanks(r, rows, x, t.balance, scale)
		}
	}
	h.Tape.Backward()
	return total, nil
}

// loss is the loss of rows of a round's blocks, whose states are x. Equation 6 takes the mean at
// each place in a block, however few of its rows are valid (weighting.placeMeans). Otherwise all
// valid rows count equally, so a place counts in proportion to how often drafting reaches it.
func (h *Head) loss(r *round, rows []int32, x nn.Mat, weight []float32, scale float32) autograd.Loss {
	j, n := &h.judging, h.net
	j.token, h.soft.Row = j.token[:0], h.soft.Row[:0]
	for _, i := range rows {
		b := r.blocks[int(i)/n.Block]
		place := b.at + int(i)%n.Block
		j.token = append(j.token, h.outputs.Rows.Row(h.texts[b.text][place+1]))
		h.soft.Row = append(h.soft.Row, int32(h.distribution(b.text, place)))
	}
	targets := autograd.Targets{Token: j.token, Weight: weight, Soft: &h.soft, Share: 1}
	return h.Tape.CrossEntropy(nn.Source{X: x, Norm: &n.Norm}, &n.Head, targets, scale)
}

// statesOf gathers the states of rows of a round's blocks.
func (h *Head) statesOf(r *round, rows []int32) nn.Mat {
	at := make([]int32, len(rows)) // new, since the tape keeps a reference to it
	for i, row := range rows {
		at[i] = int32(r.blocks[int(row)/h.net.Block].row) + row%int32(h.net.Block)
	}
	x := h.Exec.Mat(&r.trained, len(rows), h.net.Hidden)
	h.Exec.Gather(r.states, at, x)
	return x
}

// ranks computes the rank head's scores for rows of a round's blocks, whose states are x.
func (h *Head) ranks(r *round, rows []int32, x nn.Mat) nn.Mat {
	features := r.features.Mat(len(rows), specblock.Features)
	for i, row := range rows {
		copy(features.Row(i), r.said[row].features[:])
	}
	out := h.Exec.Mat(&r.scores, len(rows), specblock.RankBuckets)
	h.net.Rank(h.Exec, x, features, out, &h.bufs)
	return out
}

// rankScale keeps the rank head, which reads states at their full size, from dominating the norm by
// which the whole gradient is clipped. The scale does not change how the rank head learns: it
// shares no parameters with the rest, and the optimiser ignores the size of their gradient.
const rankScale = 1e-3

// learnRanks adds, on the tape, the gradient of the mean cross-entropy of the buckets of a round's
// rows (§3.3, rank-head supervision). Rows of rare buckets count more: a bucket's total weight is
// proportional to its number of rows to the power of 1 − balance.
func (h *Head) learnRanks(r *round, rows []int32, x nn.Mat, balance float64, scale float32) {
	out := h.ranks(r, rows, x)
	bucket := make([]int8, len(rows))
	var count [specblock.RankBuckets]float64
	for i, row := range rows {
		bucket[i] = int8(specblock.BucketOf(r.said[row].rank))
		count[bucket[i]]++
	}
	all := 0.0
	for _, n := range count {
		all += math.Pow(n, 1-balance)
	}
	var weight [specblock.RankBuckets]float32
	for b, n := range count {
		weight[b] = rankScale * scale * float32(math.Pow(n, -balance)/all)
	}
	learnBuckets(out, bucket, weight)
}

// learnBuckets adds, on the tape, the gradient of the cross-entropy of rows' scores against their
// buckets, each row with its bucket's weight.
func learnBuckets(scores nn.Mat, bucket []int8, weight [specblock.RankBuckets]float32) (l autograd.Loss) {
	d, _ := autograd.Grad(scores)
	for i, b := range bucket {
		p := scores.Row(i)
		g := d.Row(i)
		w := weight[b]
		lse := simd.LogSumExp(p)
		for c := range p {
			g[c] = w * float32(math.Exp(float64(p[c]-lse)))
		}
		g[b] -= w
		l.Add(autograd.Loss{Sum: float64(w) * float64(lse-p[b]), Weight: float64(w), Rows: 1})
	}
	return l
}
