package train

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/train/data"
)

// Config is one training run. Everything in Recipe determines the outcome; the rest does not.
type Config struct {
	Recipe
	Dir        string // checkpoints, metrics and plot
	Threads    int
	SaveEvery  time.Duration
	Report     func(Progress) // called after every step; may be nil
	Validation []*data.Set    // measured every ValidateEvery steps, on a fixed part
}

// Recipe determines the weights, together with the data.
type Recipe struct {
	Shape     Shape
	Seed      uint64
	Precision string // of products: f32 or bf16
	Length    int    // tokens in a row
	Rows      int    // rows in a step
	MicroRows int    // rows whose activations exist at a time; divides Rows
	Steps     int
	Schedule  Schedule

	// From the share LongFrom of the steps on, rows have LongLength tokens, and are fewer in
	// proportion: a model learns most from short rows, which cost less; long ones teach it to look
	// far back.
	LongFrom   float64
	LongLength int // 0: none

	Optimizer Optimizer
	Clip      float64 // longest gradient; 0: no limit

	Distill   float32   // share of the loss that is divergence from a teacher, if there is one
	Generated Generated // the teacher's text, for a draft model

	ValidateEvery int // steps; 0: never
	ValidateRows  int // of each validation source
	Patience      int // validations without a better loss before the run stops; 0: unlimited
}

// course returns the recipe in the form of the loop.
func (r *Recipe) course() Course {
	return Course{Steps: r.Steps, Schedule: r.Schedule, Optimizer: r.Optimizer, Clip: r.Clip,
		ValidateEvery: r.ValidateEvery, Patience: r.Patience}
}

// Check refuses a recipe that cannot be completed.
func (r *Recipe) Check() error {
	if err := checkPrecision(r.Precision); err != nil {
		return err
	}
	switch {
	case r.Length < 1 || r.Rows < 1 || r.Steps < 1:
		return fmt.Errorf("%d steps of %d rows of %d tokens: want positive numbers", r.Steps, r.Rows, r.Length)
	case r.MicroRows < 1 || r.Rows%r.MicroRows != 0:
		return fmt.Errorf("%d rows in parts of %d: want a divisor", r.Rows, r.MicroRows)
	case r.LongLength > 0 && (r.LongLength%r.Length != 0 || r.MicroRows%(r.LongLength/r.Length) != 0):
		return fmt.Errorf("long rows of %d tokens instead of %d of %d at a time: want a multiple that divides",
			r.LongLength, r.MicroRows, r.Length)
	}
	return r.Shape.check()
}

// Run trains a network on rows dealt from the sets until the recipe's last step, resuming from the
// last checkpoint in c.Dir. When ctx ends, it saves a checkpoint and returns ctx's error. teacher,
// which may be nil, provides soft targets.
func Run(ctx context.Context, c Config, sets []*data.Set, teacher *Teacher) (*Network, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	kind := gemm.F32
	if c.Precision == "bf16" {
		kind = gemm.BF16
	}
	pool := par.New(c.Threads)
	net, err := NewNetwork(c.Shape, pool, kind)
	if err != nil {
		return nil, err
	}
	net.Init(c.Seed)
	l := &language{Network: net, r: &c.Recipe, teacher: teacher, valid: c.Validation}
	if l.mix, err = data.NewMix(sets, c.Length, c.Seed); err != nil {
		return nil, err
	}
	if c.LongLength > 0 {
		if l.long, err = data.NewMix(sets, c.LongLength, c.Seed+1); err != nil {
			return nil, err
		}
	}
	loop := Loop{Course: c.course(), Dir: c.Dir, Pool: pool, SaveEvery: c.SaveEvery, Report: c.Report}
	return net, loop.Run(ctx, l)
}

// language is a language model as a Learner.
type language struct {
	*Network
	r       *Recipe
	mix     *data.Mix
	long    *data.Mix // rows of the last phase, nil if there is none
	teacher *Teacher
	valid   []*data.Set

	batch  []int32 // rows of a step, each with one token more
	tokens []int32
	target []int32
}

func (l *language) Params() *autograd.Params { return l.Network.Params }

// Fingerprint identifies the recipe and the rows that are dealt.
func (l *language) Fingerprint() string {
	deals := []string{l.mix.Fingerprint()}
	if l.long != nil {
		deals = append(deals, l.long.Fingerprint())
	}
	return Fingerprint(l.r, deals...)
}

// StepTokens is the number of tokens in a step's rows.
func (l *language) StepTokens() int { return l.r.Rows * l.r.Length }

// phase returns the source of a step's rows, and their number.
func (l *language) phase(step int) (mix *data.Mix, rows int) {
	if r := l.r; l.long != nil && float64(step) >= r.LongFrom*float64(r.Steps) {
		return l.long, r.Rows * r.Length / r.LongLength
	}
	return l.mix, l.r.Rows
}

// Gradient is the gradient of a step's rows.
func (l *language) Gradient(step int) (autograd.Loss, error) {
	r := l.r
	mix, rows := l.phase(step)
	length := mix.Length()
	part := rows * r.MicroRows / r.Rows // rows at a time
	l.batch = slices.Grow(l.batch[:0], rows*(length+1))[:rows*(length+1)]
	mix.Batch(step, rows, l.batch)
	var total autograd.Loss
	for from := 0; from < rows; from += part {
		l.tokens, l.target = l.tokens[:0], l.target[:0]
		for i := range part {
			row := l.batch[(from+i)*(length+1):][:length+1]
			l.tokens = append(l.tokens, row[:length]...)
			l.target = append(l.target, row[1:]...)
		}
		targets := autograd.Targets{Token: l.target}
		if l.teacher != nil {
			l.teacher.prepare(l.tokens, length)
			targets.Teacher, targets.Share = l.teacher.logits, l.teacher.Share
		}
		total.Add(l.Network.Gradient(l.tokens, length, targets, 1/float32(r.Rows*r.Length)))
	}
	return total, nil
}

// Validate measures the loss on a fixed part of every validation source.
func (l *language) Validate() (losses, figures map[string]float64, err error) {
	losses = map[string]float64{}
	for _, s := range l.valid {
		e := l.Evaluate(s, l.r.Length, l.r.MicroRows, l.r.ValidateRows)
		losses[s.Name] = e.Sum / e.Weight
	}
	return losses, nil, nil
}

// Evaluate returns the loss of up to limit rows of a set, evenly spread over it.
func (n *Network) Evaluate(s *data.Set, length, together, limit int) autograd.Loss {
	windows := s.Windows(length)
	rows := min(limit, windows)
	var total autograd.Loss
	var in, out []int32
	row := make([]int32, length+1)
	for i := range rows {
		s.Window(i*windows/rows, row)
		in = append(in, row[:length]...)
		out = append(out, row[1:]...)
		if len(in) == together*length || i == rows-1 {
			total.Add(n.Loss(in, length, autograd.Targets{Token: out}))
			in, out = in[:0], out[:0]
		}
	}
	return total
}
