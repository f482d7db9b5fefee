// Failures: panics as errors, and drafters that fail.

package speculate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/kernels/par"
)

// LogError is the default of Options.Report: it logs an error with package slog's default logger, and the stack of a
// panic. It names the model, if its name is known.
func LogError(model string, err error) {
	args := []any{"error", err}
	if model != "" {
		args = append(args, "model", model)
	}
	var p *par.Panicked
	if errors.As(err, &p) {
		args = append(args, "stack", string(p.Stack))
	}
	slog.Error("a part of the engine failed", args...)
}

// panicked reports whether an error is a panic. If so it passes it to Options.Report.
func (l *Loop) panicked(err error) bool {
	if err == nil {
		return false
	}
	var p *par.Panicked
	if !errors.As(err, &p) {
		return false
	}
	l.o.Report(err)
	return true
}

// blame handles a drafter's error. A drafter that panicked is not used again.
func (l *Loop) blame(d draft.Drafter, err error) {
	if l.panicked(err) {
		if l.broken == nil {
			l.broken = map[draft.Drafter]bool{}
		}
		l.broken[d] = true
	}
}

// runPass runs the step's pass. If it panics, the sequences of the pass fail, and the next step gets a new pass: the
// memory of the old one may be in any state.
func (l *Loop) runPass(ctx context.Context) error {
	err := l.tryPass(ctx)
	if l.panicked(err) {
		l.pass = l.target.NewPass()
		for _, s := range l.live {
			s.fail(err)
		}
		l.live = l.live[:0]
		return nil
	}
	return err
}

func (l *Loop) tryPass(ctx context.Context) (err error) {
	defer par.Recover("speculate: the target's pass", &err)
	return l.pass.Run(ctx, l.rows, l.taps)
}

// failGroup handles a drafter's error in the step: the drafter's affected sequences fail. Those whose
// texts are complete only lose the drafter.
func (l *Loop) failGroup(g *group, err error) {
	l.blame(g.drafter, err)
	g.proposals = g.proposals[:0]
	reported := l.broken[g.drafter]
	for _, s := range l.live {
		if s.group != g || s.request < 0 && len(g.commits) == 0 {
			continue
		}
		if s.finish == Running {
			s.fail(err)
			continue
		}
		if !reported {
			l.o.Report(err)
			reported = true
		}
		s.Dismiss()
	}
}

// Dismiss ends the drafter's part in the sequence, and frees its state. The sequence is then decoded plainly.
func (s *Sequence) Dismiss() {
	if s.state == nil {
		return
	}
	s.loop.blame(s.group.drafter, closeState(s.state))
	s.state, s.turn.Group = nil, nil
	s.turn.Drafts, s.turn.Asked = false, false
}

// beginState makes a drafter's state for a sequence.
func beginState(d draft.Drafter, o draft.Options) (s draft.State, err error) {
	defer par.Recover("speculate: the drafter's new sequence", &err)
	if s, err = d.Begin(o); err != nil {
		return nil, fmt.Errorf("speculate: the drafter's new sequence: %w", err)
	}
	return s, nil
}

// endState passes the sequence's statistics to the drafter's state, and closes it.
func (s *Sequence) endState() (err error) {
	defer par.Recover("speculate: the drafter's end of a sequence", &err)
	if e, ok := s.state.(Ender); ok {
		e.Ended(&s.stats)
	}
	s.state.Close()
	return nil
}

func closeState(s draft.State) (err error) {
	defer par.Recover("speculate: the drafter's end of a sequence", &err)
	s.Close()
	return nil
}
