package train

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/files/filelock"
	"github.com/grovellm/grove/internal/kernels/par"
)

// Course is the course of any training: steps of the optimiser at the schedule's rates.
type Course struct {
	Steps     int
	Schedule  Schedule
	Optimizer Optimizer
	Clip      float64 // longest gradient; 0: no limit

	ValidateEvery int // steps; 0: never
	Patience      int // validations without a better loss before the run stops; 0: unlimited
}

// Learner is the object of a loop's training: a language model, or a drafter's head.
type Learner interface {
	// Params returns the parameters, with their initial values; Pack makes the learner compute with
	// their current values.
	Params() *autograd.Params
	Pack()

	// Gradient adds the gradient of a step, counted from 0, to the parameters' gradients.
	Gradient(step int) (autograd.Loss, error)

	// Validate measures held-out text: losses, and other figures worth a line.
	Validate() (losses, figures map[string]float64, err error)

	// StepTokens is the number of tokens of text that a step reads.
	StepTokens() int

	// Fingerprint identifies everything that the outcome depends on: recipe, course and data.
	Fingerprint() string
}

// Loop takes a learner through its course.
type Loop struct {
	Course
	Dir       string // checkpoints and metrics
	Pool      *par.Pool
	SaveEvery time.Duration
	Report    func(Progress) // called after every step; may be nil
}

// Progress is the state of a run after a step, and a line of its metrics.
type Progress struct {
	Step       int                `json:"step"`
	Steps      int                `json:"-"`
	Tokens     int64              `json:"tokens"`
	Loss       float64            `json:"loss"` // of the step, in nats per token
	Rate       float32            `json:"rate"`
	Norm       float64            `json:"norm"`              // of the gradient
	PerSecond  float64            `json:"tokens_per_second"` // since the run started or resumed
	Seconds    float64            `json:"seconds"`           // taken by all steps
	Left       time.Duration      `json:"-"`
	Validation map[string]float64 `json:"validation,omitempty"` // loss by source, where measured
	Figures    map[string]float64 `json:"figures,omitempty"`    // other measures of held-out text, if there are any
}

func (p Progress) String() string {
	return fmt.Sprintf("step %d/%d  loss %.4f  norm %.2f  rate %.3f  %.0f tokens/s  %v left",
		p.Step, p.Steps, p.Loss, p.Norm, p.Rate, p.PerSecond, p.Left.Round(time.Second))
}

// running is a loop in progress.
type running struct {
	Loop
	learner Learner
	opt     *optimizer
	st      state
	log     *metrics
	tokens  int // in a step
}

// Run trains until the course's last step, resuming from the last checkpoint in l.Dir. When ctx
// ends, it saves a checkpoint and returns ctx's error.
func (l Loop) Run(ctx context.Context, learner Learner) error {
	if err := os.MkdirAll(l.Dir, 0o777); err != nil {
		return err
	}
	lock, err := filelock.Take(filepath.Join(l.Dir, ".lock"))
	switch held := new(filelock.HeldError); {
	case errors.As(err, &held):
		return fmt.Errorf("one command at a time trains in a folder: %w", err)
	case err == nil: // some file systems have no locks
		defer lock.Release()
	}
	r := &running{Loop: l, learner: learner, opt: newOptimizer(l.Optimizer, l.Pool, learner.Params().All())}
	r.tokens = learner.StepTokens()
	recipe := learner.Fingerprint()
	ok := false
	if r.st, ok, err = r.opt.load(l.Dir, recipe); err != nil {
		return err
	}
	if !ok {
		r.st = state{Recipe: recipe, Best: math.MaxFloat64}
	}
	learner.Pack()
	if r.log, err = openMetrics(filepath.Join(l.Dir, "metrics.jsonl"), r.st.Step); err != nil {
		return err
	}
	defer r.log.Close()
	return r.run(ctx)
}

func (r *running) run(ctx context.Context) error {
	began := time.Now()
	first := r.st.Step
	saved := time.Now()
	for !r.st.Done && r.st.Step < r.Steps {
		start := time.Now()
		p, err := r.step()
		if err != nil {
			return err
		}
		r.st.Seconds += time.Since(start).Seconds()
		p.Seconds = r.st.Seconds
		p.PerSecond = float64((r.st.Step-first)*r.tokens) / time.Since(began).Seconds()
		p.Left = time.Duration(float64((r.Steps-r.st.Step)*r.tokens) / p.PerSecond * float64(time.Second))
		if r.ValidateEvery > 0 && (r.st.Step%r.ValidateEvery == 0 || r.st.Step == r.Steps) {
			if err := r.validate(&p); err != nil {
				return err
			}
		}
		if err := r.log.write(p); err != nil {
			return err
		}
		if r.Report != nil {
			r.Report(p)
		}
		stop := ctx.Err()
		r.st.Done = r.st.Done || r.st.Step == r.Steps
		if r.st.Done || stop != nil || time.Since(saved) >= r.SaveEvery {
			if err := r.opt.save(r.Dir, r.st); err != nil {
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

// step takes one step of the optimiser.
func (r *running) step() (Progress, error) {
	r.learner.Params().ZeroGrad()
	loss, err := r.learner.Gradient(r.st.Step)
	if err != nil {
		return Progress{}, err
	}
	norm := r.opt.norm()
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return Progress{}, fmt.Errorf("step %d: the gradient is %g: lower the learning rate; the last checkpoint is intact", r.st.Step+1, norm)
	}
	clip := float32(1)
	if r.Clip > 0 && norm > r.Clip {
		clip = float32(r.Clip / norm)
	}
	rate := r.Schedule.at(r.st.Step, r.Steps)
	r.st.Step++
	r.opt.step(r.st.Step, rate, clip)
	r.learner.Pack()
	return Progress{Step: r.st.Step, Steps: r.Steps, Loss: loss.Sum / cmp.Or(loss.Weight, 1), Rate: rate, Norm: norm,
		Tokens: int64(r.st.Step) * int64(r.tokens)}, nil
}

// validate measures held-out text, and stops the run if its loss has not fallen for long.
func (r *running) validate(p *Progress) (err error) {
	if p.Validation, p.Figures, err = r.learner.Validate(); err != nil {
		return err
	}
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(p.Validation)) { // in a fixed order: a sum's last bits depend on it
		sum += p.Validation[name]
	}
	r.st.Stale++
	if sum < r.st.Best {
		r.st.Best, r.st.Stale = sum, 0
	}
	if r.Patience > 0 && r.st.Stale >= r.Patience {
		r.st.Done = true
	}
	return nil
}

// Fingerprint identifies a recipe's numbers and the data that it deals.
func Fingerprint(recipe any, data ...string) string {
	b, _ := json.Marshal(recipe)
	h := fnv.New64a()
	h.Write(b)
	for _, s := range data {
		io.WriteString(h, s)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// Tasks is the work of a pool's workers.
type Tasks func(worker, task int)

// Do does one task.
func (t Tasks) Do(worker, task int) { t(worker, task) }
