package speculate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/speculate"
)

// failing proposes nothing, or fails in Propose.
type failing struct {
	draft.Base
	err error
}

func (*failing) Begin(draft.Options) (draft.State, error) { return stateless{}, nil }
func (*failing) Commit([]draft.Rows) error                { return nil }
func (d *failing) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	return batch.Proposals(nil, len(requests)), d.err
}

type stateless struct{}

func (stateless) Close() {}

// If the drafter of all sequences of a pass fails, they end with its error, and other sequences
// continue: here, one whose drafter receives rows that came with a cache.
func TestDrafterOfAllFails(t *testing.T) {
	m := drafttest.OpenTarget(t, 64)
	loop := drafttest.Must(speculate.New(speculate.Model(m), nil, speculate.Options{Chunk: 5, Uncontrolled: true}))(t)
	prompt := make([]int32, 20)
	cache := m.NewCache()
	defer cache.Free()
	if err := m.NewPass().Prefill(context.Background(), cache, prompt[:19], false); err != nil {
		t.Fatal(err)
	}
	broken := &failing{err: errors.New("no memory")}
	one := drafttest.Must(loop.Start([]int32{1, 2}, speculate.Request{Drafter: broken, MaxTokens: 4}))(t)
	defer one.Close()
	step := func(all ...*speculate.Sequence) {
		t.Helper()
		if err := loop.Step(context.Background(), all); err != nil {
			t.Fatal(err)
		}
	}
	step(one)
	other := drafttest.Must(loop.Start(prompt, speculate.Request{Drafter: &failing{}, Cache: cache, MaxTokens: 4}))(t)
	defer other.Close()
	step(one, other)
	if one.Finish() != speculate.Failed || !errors.Is(one.Err(), broken.err) {
		t.Errorf("it ended with %q, %v; want the drafter's error", one.Finish(), one.Err())
	}
	for other.Finish() == speculate.Running {
		step(one, other)
	}
	if other.Finish() != speculate.Length {
		t.Errorf("the other ended with %q, %v", other.Finish(), other.Err())
	}
}
