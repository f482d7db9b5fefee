package specblock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// The rank head learns together with the rest of the head, whose distributions change until the
// end, and each step's rows come from the same few texts. So when the rest is finished, a new rank
// head is fitted to it: rows of many texts that the head has not learned from are stored with their
// buckets, and used in random order. It learns by plain cross-entropy, so that its scores are
// log-probabilities, with which trees are weighed. The offsets that are added when one bucket is
// chosen are fitted separately, on rows of other texts (offsets.go).

// RankFit describes how the rank head is fitted to a finished head.
type RankFit struct {
	// for how many of the head's steps texts are read; 0: the rank head stays as it was trained with the rest
	Texts int
	Apart int // for how many further steps, for the offsets
	Rows  int // rows per step
	train.Course
}

func newRankFit() RankFit {
	f := RankFit{Texts: 200, Apart: 40, Rows: 1024,
		Course: train.Course{Steps: 400, Schedule: train.Schedule{Warmup: 0.02, Cooldown: 0.8, Floor: 0.02,
			Cosine: true}, Optimizer: train.DefaultOptimizer(), Clip: 1}}
	f.Optimizer.Muon = false
	f.Optimizer.Rate = 2e-3
	f.Optimizer.Decay = 0.01
	return f
}

func (f *RankFit) check() error {
	switch {
	case f.Texts < 0:
		return fmt.Errorf("the rank head is fitted to the texts of %d steps: want 0 or more", f.Texts)
	case f.Texts > 0 && (f.Apart < 1 || f.Rows < 1 || f.Steps < 1):
		return fmt.Errorf("the rank head is fitted by %d steps of %d rows, its offsets to the texts of %d: want positive numbers", f.Steps, f.Rows, f.Apart)
	}
	return nil
}

// Finish fits the rank head to the finished head, in DIR/ranks.
func (l *learner) Finish(ctx context.Context, dir string) error {
	f := &l.r.Ranks
	if f.Texts == 0 || l.r.RankWidth == 0 {
		return nil
	}
	l.Job.Notef("reading %d steps of text for the rank head", f.Apart)
	first := l.r.Steps // the first step that the head has not seen
	apart, err := l.readRanks(ctx, first, first+f.Apart)
	if err != nil {
		return err
	}
	k, err := newRankLearner(l, apart, func() (*rankRows, error) {
		l.Job.Notef("reading %d more", f.Texts)
		return l.readRanks(ctx, first+f.Apart, first+f.Apart+f.Texts)
	})
	if err != nil {
		return err
	}
	loop := train.Loop{Course: f.Course, Dir: filepath.Join(dir, "ranks"), Pool: l.Job.Target.Pool(),
		SaveEvery: l.Job.SavesEvery(), Report: l.Job.Report}
	if err := loop.Run(ctx, k); err != nil {
		return err
	}
	k.install()
	l.head.net.RankOffset = bestOffsets(k.scores(apart), apart.bucket)
	return nil
}

// rankRows are rows of blocks: the rank head's inputs for each, and its bucket.
type rankRows struct {
	states, features []float32
	bucket           []int8
}

// readRanks runs the head over the texts of some steps, and keeps the rows that drafting reaches:
// those with only right rows before them in their block, in blocks that start from such rows.
func (l *learner) readRanks(ctx context.Context, from, to int) (*rankRows, error) {
	h, rows := l.head, new(rankRows)
	h.Tape.Detach()
	for step := from; step < to; step++ {
		first, texts := l.Step(step)
		for i := range texts {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			starts := l.draw(first+i, &texts[i], l.r.Rounds, l.r.Anchors)
			if err := h.forward([][]int32{texts[i].Tokens}, [][]start{starts}, l.r.Rounds, true); err != nil {
				return nil, err
			}
			for _, r := range h.rounds[:l.r.Rounds] {
				for k, s := range r.said {
					if s.valid {
						at := r.blocks[k/h.net.Block].row + k%h.net.Block
						rows.states = append(rows.states, r.states.Row(at)...)
						rows.features = append(rows.features, s.features[:]...)
						rows.bucket = append(rows.bucket, int8(specblock.BucketOf(s.rank)))
					}
				}
			}
		}
	}
	return rows, nil
}

// rankLearner is a rank head over a frozen head, as a train.Learner. Its parameters expect states
// and features scaled to size one: install folds that scale into the weights.
type rankLearner struct {
	base   *learner
	of     string // hash of the base's weights
	read   func() (*rankRows, error)
	rows   *rankRows // the rows to learn from; nil before the first step
	order  []int     // their order in this epoch
	epoch  int
	bucket []int8 // of the current step's rows

	ranks         specblock.Network // only its rank head is used
	params        *autograd.Params
	exec          *nn.Exec
	tape          *autograd.Tape
	bufs          specblock.Buffers
	in, said, out nn.Buffer

	state    float32 // factor for states; features has those for features
	features [specblock.Features]float32
}

// newRankLearner makes the learner of a rank head over l's head. Scales come from apart; read
// returns the rows to learn from.
func newRankLearner(l *learner, apart *rankRows, read func() (*rankRows, error)) (*rankLearner, error) {
	k := &rankLearner{base: l, read: read, params: autograd.NewParams(gemm.F32), exec: nn.NewExec(l.Job.Target.Pool())}
	c := &l.head.net.Config
	k.ranks.RankWidth = c.RankWidth
	for _, p := range []struct {
		linear     *nn.Linear
		name       string
		rows, cols int
	}{{&k.ranks.RankHidden, "rank_hidden", c.RankWidth, c.Hidden},
		{&k.ranks.RankFeatures, "rank_features", c.RankWidth, specblock.Features},
		{&k.ranks.RankOut, "rank_out", specblock.RankBuckets, c.RankWidth}} {
		w, err := k.params.Matrix(p.name+".weight", p.rows, p.cols)
		if err != nil {
			return nil, err
		}
		p.linear.W = w
	}
	k.tape = autograd.NewTape(k.exec, k.params)
	train.Initialise(k.params, l.r.Seed, 1)
	k.state = 1 / deviation(apart.states, 0, 1)
	for i := range k.features {
		k.features[i] = 1 / deviation(apart.features, i, specblock.Features)
	}
	hash := sha256.New()
	for _, p := range l.head.Params.All() {
		if err := train.WriteFloats(hash, p.Data); err != nil {
			return nil, err
		}
	}
	k.of = hex.EncodeToString(hash.Sum(nil))
	return k, nil
}

// Params, Pack and the rest make it a Learner.
func (k *rankLearner) Params() *autograd.Params { return k.params }
func (k *rankLearner) Pack()                    { k.params.Pack(k.tape.Products()) }

// Fingerprint covers the recipe, the base's weights and the base's fingerprint.
func (k *rankLearner) Fingerprint() string {
	return train.Fingerprint(&k.base.r.Ranks, k.base.Fingerprint(), k.of)
}

// StepTokens is the number of rows in a step.
func (k *rankLearner) StepTokens() int { return k.base.r.Ranks.Rows }

// Validate measures the base with the current rank head on held-out text.
func (k *rankLearner) Validate() (losses, figures map[string]float64, err error) {
	k.install()
	return k.base.Validate()
}

// Gradient adds the gradient of a step's rows.
func (k *rankLearner) Gradient(step int) (autograd.Loss, error) {
	if k.rows == nil {
		var err error
		if k.rows, err = k.read(); err != nil {
			return autograd.Loss{}, err
		}
	}
	n := k.base.r.Ranks.Rows
	at := make([]int, n)
	for i := range at {
		at[i] = k.deal(step*n + i)
	}
	k.tape.Reset()
	k.tape.Attach()
	out := k.run(k.rows, at)
	k.bucket = k.bucket[:0]
	for _, row := range at {
		k.bucket = append(k.bucket, k.rows.bucket[row])
	}
	even := [specblock.RankBuckets]float32{}
	for b := range even {
		even[b] = 1 / float32(n)
	}
	l := learnBuckets(out, k.bucket, even)
	k.tape.Backward()
	return l, nil
}

// deal returns the i-th row to learn from: every epoch has all rows, in a random order of its own.
func (k *rankLearner) deal(i int) int {
	n := len(k.rows.bucket)
	if epoch := i / n; k.order == nil || epoch != k.epoch {
		k.epoch, k.order = epoch, rand.New(rand.NewPCG(k.base.r.Seed, uint64(epoch))).Perm(n)
	}
	return k.order[i%n]
}

// run computes the scores of some rows.
func (k *rankLearner) run(rows *rankRows, at []int) nn.Mat {
	hidden := k.base.head.net.Hidden
	in, said := k.in.Mat(len(at), hidden), k.said.Mat(len(at), specblock.Features)
	for i, row := range at {
		for c, v := range rows.states[row*hidden : (row+1)*hidden] {
			in.Row(i)[c] = v * k.state
		}
		for c, v := range rows.features[row*specblock.Features : (row+1)*specblock.Features] {
			said.Row(i)[c] = v * k.features[c]
		}
	}
	out := k.exec.Mat(&k.out, len(at), specblock.RankBuckets)
	k.ranks.Rank(k.exec, in, said, out, &k.bufs)
	return out
}

// install copies the current rank head into the base.
func (k *rankLearner) install() {
	head := train.ByName(k.base.head.Params)
	for _, p := range k.params.All() {
		to := head[p.Name]
		for i, v := range p.Data {
			switch p.Name {
			case "rank_hidden.weight":
				v *= k.state
			case "rank_features.weight":
				v *= k.features[i%specblock.Features]
			}
			to.Data[i] = v
		}
	}
	k.base.head.Pack()
}
