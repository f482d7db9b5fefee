// Package check searches for counterexamples to grove's laws on generated cases: random models,
// texts, trees and ways to run them. The same code serves the command (grove-lab check) and, with
// few cases, the test suite.
//
// Attention goes over ranges of positions, each of 1,024 in service. A case draws their length, so
// that short texts have several; and a few texts are longer than two of service.
//
// A case is a pure function of the seed and its number, so that a mismatch found among a million
// cases can be run again alone (Options.Only).
package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// Options says what to check.
type Options struct {
	Cases int
	Seed  uint64
	Only  int // run this case alone; negative for all

	Progress func(done, total int) // called after each case; may be nil
}

// Report is what a check found.
type Report struct {
	Cases      int      `json:"cases"`      // run, all of them unless interrupted
	Mismatches int      `json:"mismatches"` // cases in which the law did not hold
	Tokens     int      `json:"tokens,omitempty"`
	Levels     []string `json:"levels"`             // kernel levels compared
	Failures   []string `json:"failures,omitempty"` // the first mismatches, in words
}

// maxFailures is how many mismatches a report describes.
const maxFailures = 10

// mismatch is a law that did not hold. Any other error of a case is a fault of the run itself.
type mismatch struct{ text string }

func (m mismatch) Error() string { return m.text }

func mismatchf(format string, args ...any) error { return mismatch{fmt.Sprintf(format, args...)} }

// run runs cases one after another, in an order that keeps one model open: levels are switched for
// the whole program, so no two may overlap. It returns what it has when ctx ends, with ctx's error.
// one checks a model, and adds the tokens that it compared.
func run(ctx context.Context, o Options,
	one func(ctx context.Context, v *variant, rng *rand.Rand, tokens *int) error) (r Report, err error) {
	if o.Cases < 1 {
		return r, fmt.Errorf("check: %d cases: want at least 1", o.Cases)
	}
	if o.Only >= o.Cases {
		return r, fmt.Errorf("check: case %d of %d: want 0 to %d", o.Only, o.Cases, o.Cases-1)
	}
	for _, l := range cpu.Levels() {
		r.Levels = append(r.Levels, l.String())
	}
	defer cpu.Use(cpu.Active())()
	dir, err := os.MkdirTemp("", "grove-check-")
	if err != nil {
		return r, fmt.Errorf("check: its random models need a temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)
	s := &models{dir: dir, seed: o.Seed}
	defer s.close()

	from, to := 0, o.Cases
	if o.Only >= 0 {
		from, to = o.Only, o.Only+1
	}
	for _, n := range inOrder(from, to) {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		rng := rand.New(rand.NewPCG(o.Seed, uint64(n)))
		restore := nn.UseRanges([]int{1, 2, 5, 32}[rng.IntN(4)])
		err := runCase(s, func() error {
			v, err := s.get(ctx, n)
			if err != nil {
				return err
			}
			return one(ctx, v, rng, &r.Tokens)
		})
		restore()
		m, wrong := err.(mismatch)
		switch {
		case wrong:
			r.Mismatches++
			if len(r.Failures) < maxFailures {
				r.Failures = append(r.Failures, fmt.Sprintf("case %d (seed %d): %s", n, o.Seed, m.text))
			}
		case err != nil && ctx.Err() != nil:
			return r, ctx.Err()
		case err != nil:
			return r, fmt.Errorf("check: case %d (seed %d): %w", n, o.Seed, err)
		}
		r.Cases++
		if o.Progress != nil {
			o.Progress(r.Cases, to-from)
		}
	}
	return r, nil
}

// runCase runs a case. A panic is a mismatch, after which the model is opened anew.
func runCase(s *models, one func() error) error {
	err := func() (err error) {
		defer par.Recover("it", &err)
		return one()
	}()
	var p *par.Panicked
	if errors.As(err, &p) {
		s.close()
		return mismatchf("%v\n%s", err, p.Stack)
	}
	return err
}
