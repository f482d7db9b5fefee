package grove_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
)

var errPlanted = errors.New("planted")

// panicker is a drafter that panics in its third proposal. It proposes nothing.
type panicker struct {
	draft.Base
	proposals int
}

type nothing struct{}

func (nothing) Close() {}

func (*panicker) Begin(draft.Options) (draft.State, error) { return nothing{}, nil }
func (*panicker) Commit([]draft.Rows) error                { return nil }
func (d *panicker) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.proposals++
	if d.proposals == 3 {
		panic(errPlanted)
	}
	return make([]draft.Proposal, len(requests)), nil
}

func init() {
	registry.Register(registry.Family{Name: "panicker", Help: "panics", Test: true, New: func(string, registry.Modifiers,
		registry.Target) (draft.Drafter, error) {
		return new(panicker), nil
	}})
}

// A drafter that panics ends its generation with an error without a stack, after the tokens
// generated so far. The model continues, and later generations with the drafter get their tokens.
func TestPanicIsAnError(t *testing.T) {
	m := open(t, "tiny-qwen2", grove.Options{Threads: 1})
	r := grove.Request{MaxTokens: 20, IgnoreEnd: true}
	plain := r
	plain.Drafter = "plain"
	want, err := grove.Collect(m.Generate(ctx, "go go go", plain))
	if err != nil {
		t.Fatal(err)
	}
	s := m.NewSession()
	defer s.Close()
	r.Drafter, r.Uncontrolled = "panicker", true
	var got []int32
	var failed error
	for c, err := range s.Generate(ctx, "go go go", r) {
		got, failed = append(got, c.Tokens...), err
	}
	if !errors.Is(failed, errPlanted) || strings.Contains(failed.Error(), "goroutine") {
		t.Errorf("it ended with %v", failed)
	}
	if len(got) == 0 || len(got) >= len(want.Tokens) || !slices.Equal(got, want.Tokens[:len(got)]) {
		t.Errorf("it got %v of %v", got, want.Tokens)
	}
	again, err := grove.Collect(s.Generate(ctx, "go go go", r))
	if err != nil || !slices.Equal(again.Tokens, want.Tokens) {
		t.Errorf("the next generation came to %v, %v; want %v", again, err, want.Tokens)
	}
}
