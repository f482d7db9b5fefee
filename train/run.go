package train

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/train/data"
)

// Config is one training run. Everything in Recipe decides the outcome; the rest does not.
type Config struct {
	Recipe
	Dir        string // checkpoints, metrics and plot
	Threads    int
	SaveEvery  time.Duration
	Report     func(Progress) // called after every step; may be nil
	Validation []*data.Set    // measured every ValidateEvery steps, on a fixed part
}

// Recipe is what the weights are a function of, with the data.
type Recipe struct {
	Shape     Shape
	Seed      uint64
	Precision string // of products: f32 or bf16
	Length    int    // tokens of a row
	Rows      int    // rows of a step
	MicroRows int    // rows whose activations live at a time; divides Rows
	Steps     int
	Schedule  Schedule

	// From the share LongFrom of the steps on, rows are LongLength tokens, and as many fewer: most of
	// what a model learns it learns from short rows, which cost less; long ones teach it to look far back.
	LongFrom   float64
	LongLength int // 0: none

	Optimizer Optimizer
	Clip      float64 // longest gradient; 0: no limit

	Distill   float32   // share of the loss that is divergence from a teacher, if there is one
	Generated Generated // text of the teacher's, for a draft model

	ValidateEvery int // steps; 0: never
	ValidateRows  int // of each validation source
	Patience      int // validations without a better loss before the run stops; 0: never
}

// Progress is the state of a run after a step.
type Progress struct {
	Step, Steps int
	Loss        float64 // of the step, in nats per token
	Rate        float32
	Norm        float64 // of the gradient
	Tokens      int64
	PerSecond   float64 // tokens, since the run began or went on
	Peak        float64 // share of the machine's f32 peak that model arithmetic takes
	Left        time.Duration
	Validation  map[string]float64 // loss by source, where measured
}

func (p Progress) String() string {
	s := fmt.Sprintf("step %d/%d  loss %.4f  norm %.2f  rate %.3f  %.0f tokens/s  %.0f%% of f32 peak  %v left", p.Step, p.Steps, p.Loss, p.Norm, p.Rate,
		p.PerSecond, p.Peak*100, p.Left.Round(time.Second))
	return s
}

func (r *Recipe) check() error {
	switch {
	case r.Precision != "f32" && r.Precision != "bf16":
		return fmt.Errorf("precision %q: want f32 or bf16", r.Precision)
	case r.Length < 1 || r.Rows < 1 || r.Steps < 1:
		return fmt.Errorf("%d steps of %d rows of %d tokens: want positive numbers", r.Steps, r.Rows, r.Length)
	case r.MicroRows < 1 || r.Rows%r.MicroRows != 0:
		return fmt.Errorf("%d rows in parts of %d: want a divisor", r.Rows, r.MicroRows)
	case r.LongLength > 0 && (r.LongLength%r.Length != 0 || r.MicroRows%(r.LongLength/r.Length) != 0):
		return fmt.Errorf("long rows of %d tokens instead of %d of %d at a time: want a multiple that divides", r.LongLength, r.MicroRows, r.Length)
	}
	return r.Shape.check()
}

// trainer is a run under way.
type trainer struct {
	Config
	net  *Network
	mix  *data.Mix
	long *data.Mix // rows of the last phase, nil without
	opt  *optimizer
	st   state
	log  *metrics

	began  time.Time
	fresh  int64   // tokens since then
	batch  []int32 // rows of a step, each with one token more
	tokens []int32
	target []int32
}

// Run trains a network on rows dealt from the sets until the recipe's last step, going on from the last checkpoint in
// c.Dir. When ctx ends it saves and returns ctx's error. teacher, which may be nil, is asked
// for soft targets.
func Run(ctx context.Context, c Config, sets []*data.Set, teacher *Teacher) (*Network, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
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
	t := &trainer{Config: c, net: net, opt: newOptimizer(c.Optimizer, pool, net.Params.All())}
	if t.mix, err = data.NewMix(sets, c.Length, c.Seed); err != nil {
		return nil, err
	}
	if c.LongLength > 0 {
		if t.long, err = data.NewMix(sets, c.LongLength, c.Seed+1); err != nil {
			return nil, err
		}
	}
	recipe := t.fingerprint()
	ok := false
	if t.st, ok, err = t.opt.load(c.Dir, recipe); err != nil {
		return nil, err
	}
	if !ok {
		t.st = state{Recipe: recipe, Best: math.MaxFloat64}
	}
	net.Pack()
	t.log, err = openMetrics(filepath.Join(c.Dir, "metrics.jsonl"), t.st.Step)
	if err != nil {
		return nil, err
	}
	defer t.log.Close()
	return net, t.run(ctx, teacher)
}

// fingerprint of all that decides the outcome.
func (t *trainer) fingerprint() string {
	b, _ := json.Marshal(t.Recipe)
	h := fnv.New64a()
	h.Write(b)
	fmt.Fprint(h, t.mix.Fingerprint())
	if t.long != nil {
		fmt.Fprint(h, t.long.Fingerprint())
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

func (t *trainer) run(ctx context.Context, teacher *Teacher) error {
	t.began = time.Now()
	saved := time.Now()
	peak := peakF32(t.Threads)
	perToken := t.Shape.operations(t.Length)
	if teacher != nil {
		perToken += teacher.Net.Shape.operations(t.Length) / 3 // it only runs forward
	}
	for !t.st.Done && t.st.Step < t.Steps {
		start := time.Now()
		p, err := t.step(teacher)
		if err != nil {
			return err
		}
		t.st.Seconds += time.Since(start).Seconds()
		p.PerSecond = float64(t.fresh) / time.Since(t.began).Seconds()
		p.Peak = p.PerSecond * perToken / peak
		p.Left = time.Duration(float64(t.Steps-t.st.Step) * float64(t.Rows*t.Length) / p.PerSecond * float64(time.Second))
		if t.ValidateEvery > 0 && (t.st.Step%t.ValidateEvery == 0 || t.st.Step == t.Steps) {
			t.validate(&p)
		}
		if err := t.log.write(p, t.st.Seconds); err != nil {
			return err
		}
		if t.Report != nil {
			t.Report(p)
		}
		stop := ctx.Err()
		if t.st.Step == t.Steps {
			t.st.Done = true
		}
		if t.st.Done || stop != nil || time.Since(saved) >= t.SaveEvery {
			if err := t.opt.save(t.Dir, t.st); err != nil {
				return err
			}
			saved = time.Now()
		}
		if stop != nil {
			return stop
		}
	}
	return nil
}

// phase is where the rows of a step come from, and how many they are.
func (t *trainer) phase(step int) (mix *data.Mix, rows int) {
	if t.long != nil && float64(step) >= t.LongFrom*float64(t.Steps) {
		return t.long, t.Rows * t.Length / t.LongLength
	}
	return t.mix, t.Rows
}

// step takes one step of the optimiser.
func (t *trainer) step(teacher *Teacher) (Progress, error) {
	t.net.Params.ZeroGrad()
	n := t.MicroRows * t.Length
	mix, rows := t.phase(t.st.Step)
	length := mix.Length()
	part := rows * t.MicroRows / t.Rows // rows at a time
	t.batch = slices.Grow(t.batch[:0], rows*(length+1))[:rows*(length+1)]
	mix.Batch(t.st.Step, rows, t.batch)
	var total nn.Loss
	for from := 0; from < rows; from += part {
		t.tokens, t.target = t.tokens[:0], t.target[:0]
		for i := range part {
			row := t.batch[(from+i)*(length+1):][:length+1]
			t.tokens = append(t.tokens, row[:length]...)
			t.target = append(t.target, row[1:]...)
		}
		targets := nn.Targets{Token: t.target}
		if teacher != nil {
			teacher.prepare(t.tokens, length)
			targets.Teacher, targets.Share = teacher.logits, teacher.Share
		}
		total.Add(t.net.Gradient(t.tokens, length, targets, 1/float32(t.Rows*t.Length)))
		t.fresh += int64(n)
	}
	norm := t.opt.norm()
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return Progress{}, fmt.Errorf("step %d: the gradient is %g: lower the learning rate; the last checkpoint is intact", t.st.Step+1, norm)
	}
	clip := float32(1)
	if t.Clip > 0 && norm > t.Clip {
		clip = float32(t.Clip / norm)
	}
	rate := t.Schedule.at(t.st.Step, t.Steps)
	t.st.Step++
	t.opt.step(t.st.Step, rate, clip)
	t.net.Pack()
	return Progress{Step: t.st.Step, Steps: t.Steps, Loss: total.Sum / total.Weight, Rate: rate, Norm: norm,
		Tokens: int64(t.st.Step) * int64(t.Rows*t.Length)}, nil
}

// validate measures the loss on the first rows of every validation source, and stops the run
// when it has not fallen for long.
func (t *trainer) validate(p *Progress) {
	p.Validation = map[string]float64{}
	sum := 0.0
	for _, s := range t.Validation {
		l := t.net.Evaluate(s, t.Length, t.MicroRows, t.ValidateRows)
		p.Validation[s.Name] = l.Sum / l.Weight
		sum += l.Sum / l.Weight
	}
	if t.st.Stale++; sum < t.st.Best {
		t.st.Best, t.st.Stale = sum, 0
	}
	if t.Patience > 0 && t.st.Stale >= t.Patience {
		t.st.Done = true
	}
}

// Evaluate is the loss of up to limit rows of a set, evenly spread over it.
func (n *Network) Evaluate(s *data.Set, length, together, limit int) nn.Loss {
	windows := s.Windows(length)
	rows := min(limit, windows)
	var total nn.Loss
	var in, out []int32
	row := make([]int32, length+1)
	for i := range rows {
		s.Window(i*windows/rows, row)
		in = append(in, row[:length]...)
		out = append(out, row[1:]...)
		if len(in) == together*length || i == rows-1 {
			total.Add(n.Loss(in, length, nn.Targets{Token: out}))
			in, out = in[:0], out[:0]
		}
	}
	return total
}

// operations is the arithmetic of the model per token of training: six operations per weight of a
// product (two forward, four backward), and attention over half a row on average.
func (s *Shape) operations(length int) float64 {
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	layer := s.Hidden*(q+2*kv) + q*s.Hidden + 3*s.Hidden*s.FFN
	weights := s.Layers*layer + s.Vocab*s.Hidden
	attention := s.Layers * q * length // 2 products · 2 operations · length/2 · q, forward; twice that backward
	return 6*float64(weights) + 6*float64(attention)
}

// peakF32 measures the machine's f32 multiply-add rate on so many threads, in operations a second.
func peakF32(threads int) float64 {
	pool := par.New(threads)
	defer pool.Close()
	best := 0.0
	for iters := 1 << 16; ; iters *= 4 {
		ops := make([]int, pool.Threads())
		start := time.Now()
		pool.Run(len(ops), job(func(_, i int) { ops[i] = gemm.PeakKernel(gemm.F32, iters) }))
		d := time.Since(start)
		total := 0
		for _, n := range ops {
			total += n
		}
		best = max(best, float64(total)/d.Seconds())
		if d > 50*time.Millisecond {
			return best
		}
	}
}
