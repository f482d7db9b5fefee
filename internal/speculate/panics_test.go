package speculate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	_ "github.com/grovellm/grove/internal/drafters/lookup"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/speculate"
)

// lateFault is a drafter whose n-th commit after the prompt fails.
type lateFault struct {
	draft.Drafter
	commits int
	panics  bool
	closed  int // states
}

type lateState struct {
	draft.State
	d *lateFault
}

func (s lateState) Close() { s.State.Close(); s.d.closed++ }

var errLate = errors.New("disk full")

func (d *lateFault) Begin(o draft.Options) (draft.State, error) {
	s, err := d.Drafter.Begin(o)
	return lateState{s, d}, err
}

func (d *lateFault) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	inner := slices.Clone(requests)
	for i := range inner {
		inner[i].State = inner[i].State.(lateState).State
	}
	return d.Drafter.Propose(ctx, inner)
}

func (d *lateFault) Commit(rows []draft.Rows) error {
	if rows[0].Next >= 0 {
		d.commits--
		if d.commits == 0 {
			if d.panics {
				panic(errLate)
			}
			return errLate
		}
	}
	inner := slices.Clone(rows)
	for i := range inner {
		inner[i].State = inner[i].State.(lateState).State
	}
	return d.Drafter.Commit(inner)
}

// A drafter's commit may fail in any round. The tokens of the round are there anyway; a text that
// they complete ends as it would have, the error is reported, and the drafter's state is closed.
func TestFailedCommitLosesNoText(t *testing.T) {
	m := drafttest.OpenTarget(t, 64)
	prompt := []int32{1, 2, 3, 1, 2, 3, 1, 2}
	for _, panics := range []bool{false, true} {
		for commits := 1; ; commits++ {
			const most = 9
			reports := 0
			d := &lateFault{drafttest.Must(registry.New("lookup", registry.Target{Vocab: m.Config.Vocab}))(t), commits, panics, 0}
			loop := drafttest.Must(speculate.New(speculate.Model(m), d, speculate.Options{Uncontrolled: true,
				Report: func(err error) {
					reports++
					if !errors.Is(err, errLate) {
						t.Errorf("reported: %v", err)
					}
				}}))(t)
			run := func(d draft.Drafter, budget int) *speculate.Sequence {
				s := drafttest.Must(loop.Start(prompt, speculate.Request{Drafter: d, MaxTokens: most, Budget: budget}))(t)
				for s.Finish() == speculate.Running {
					if err := loop.Step(t.Context(), []*speculate.Sequence{s}); err != nil {
						t.Fatal(err)
					}
				}
				return s
			}
			want := slices.Clone(run(d, 1).Output())
			s := run(d, 20)
			what := fmt.Sprintf("round %d, panics %v", commits, panics)
			got := s.Output()
			if !slices.Equal(got, want[:min(len(got), len(want))]) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
			complete := len(got) == most
			if complete && (s.Finish() != speculate.Length || s.Err() != nil) || !complete && !errors.Is(s.Err(), errLate) {
				t.Errorf("%s: %d of %d tokens, ended by %q, %v", what, len(got), most, s.Finish(), s.Err())
			}
			if !complete && len(s.Fresh()) == 0 {
				t.Errorf("%s: the round's tokens are lost", what)
			}
			if happened := d.commits <= 0; happened && (complete || panics) && (reports != 1 || complete && d.closed == 0) {
				t.Errorf("%s: reported %d times, %d states closed", what, reports, d.closed)
			}
			s.Close()
			if d.commits > 0 {
				break // there are no more rounds
			}
		}
	}
}
