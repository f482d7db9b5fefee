package engine_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tensor"
)

// Requests arrive, and statistics are read, while a step replaces the drafter's head. The race
// detector sees the rest.
func TestPagesWhileHeadsChange(t *testing.T) {
	m := drafttest.OpenTarget(t, 64)
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(1, 1)), "eagle3", m.Config, tensor.F32)
	n := drafttest.Must(eagle.NewNetwork(c, synthetic.Head(&c, tensor.F32, 1), synthetic.Tokens(&c, 1), &m.Network))(t)
	d := drafttest.Must(eagle.New(n, &grow.Linear{K: 2}, false, nil, m.Pool()))(t)
	e := start(t, m, engine.Options{})
	if err := e.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for range 100 {
			d.(learn.Learner).Use(d.(learn.Learner).Head())
		}
	})
	for range 100 {
		r := request(4, 1)
		r.Drafter = d
		if err := e.Submit(t.Context(), r); err == nil {
			t.Fatal("an engine that drains took a request")
		}
	}
	all.Wait()
}

// The context is as much of a text as memory holds. Drafters, whose rows take memory too, do not change where it ends.
func TestContextOfMemory(t *testing.T) {
	m := drafttest.OpenTarget(t, 1024)
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(1, 1)), "eagle3", m.Config, tensor.F32)
	n := drafttest.Must(eagle.NewNetwork(c, synthetic.Head(&c, tensor.F32, 1), synthetic.Tokens(&c, 1), &m.Network))(t)
	d := drafttest.Must(eagle.New(n, &grow.Linear{K: 2}, false, nil, m.Pool()))(t)
	limit := int64(m.NewCache().Pages().RowBytes()) * 420
	for _, long := range []int{30, 250, 380} {
		var want []int32
		for _, d := range []draft.Drafter{nil, d} {
			e := start(t, m, engine.Options{CacheMemory: limit})
			var text []int32
			var finish speculate.Finish
			most := int64(0)
			done := make(chan error)
			r := request(long, 0)
			r.Drafter, r.Uncontrolled = d, true
			r.Step = func(u *engine.Update) { text, finish = append(text, u.Tokens...), u.Finish }
			r.Done = func(err error) { go func() { done <- err }() }
			r.Hold = func() bool { most = max(most, m.NewCache().Pages().InUse()+inUse(d)); return false }
			if err := e.Submit(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			err := <-done
			if err != nil || finish != speculate.Context || long+len(text) != e.Context() || most > limit {
				t.Errorf("%d tokens and %d, of %d, ended by %s with %d bytes of %d: %v", long, len(text), e.Context(), finish, most,
					limit, err)
			}
			if want == nil {
				want = text
			} else if !slices.Equal(text, want) {
				t.Errorf("%v, want %v", text, want)
			}
			e.Close()
		}
	}
}

// inUse returns the memory of a drafter's rows.
func inUse(d draft.Drafter) (bytes int64) {
	if d != nil {
		for _, p := range d.Pages() {
			bytes += p.InUse()
		}
	}
	return bytes
}

// watched is a drafter whose next Commit waits if told to.
type watched struct {
	draft.Base
	waits       atomic.Bool
	began, goOn chan struct{}
}

func (d *watched) Begin(draft.Options) (draft.State, error) { return (*watchedState)(d), nil }

func (d *watched) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	return make([]draft.Proposal, len(requests)), nil
}

func (d *watched) Commit([]draft.Rows) error {
	if d.waits.CompareAndSwap(true, false) {
		close(d.began)
		<-d.goOn
	}
	return nil
}

type watchedState watched

func (*watchedState) Close() {}

// What a drafter keeps of a prefix is closed between steps, whoever drops it: only one goroutine uses a drafter.
func TestForgottenBetweenSteps(t *testing.T) {
	e := start(t, open(t), engine.Options{})
	d := &watched{began: make(chan struct{}), goOn: make(chan struct{})}
	submit := func(tenant string) (ended chan error) {
		r := request(4, 2)
		r.Tenant, r.Drafter = tenant, d
		ended = make(chan error, 1)
		r.Done = func(err error) { ended <- err }
		if err := e.Submit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return ended
	}
	if err := <-submit("a"); err != nil {
		t.Fatal(err)
	}
	d.waits.Store(true)
	other := submit("b")
	<-d.began
	forgotten := make(chan struct{})
	go func() { e.Forget("a"); close(forgotten) }()
	select {
	case <-forgotten:
		t.Error("a state was closed while the drafter committed")
	case <-time.After(50 * time.Millisecond):
	}
	close(d.goOn)
	<-forgotten
	if err := <-other; err != nil {
		t.Fatal(err)
	}
}

// However long steps take, a drafter that drafts nothing is as fast as plain decoding.
func TestSpeedOfPlainRounds(t *testing.T) {
	e := start(t, open(t), engine.Options{})
	for i := range 4 {
		ended := make(chan error, 1)
		r := request(3+i, 200)
		r.Name = "none"
		r.Done = func(err error) { ended <- err }
		if err := e.Submit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if d := e.Stats().Drafters; len(d) != 1 || math.Abs(d[0].Speedup-1) > 1e-9 {
		t.Errorf("%+v: want a speed-up of 1", d)
	}
}
