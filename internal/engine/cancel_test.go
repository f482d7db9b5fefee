package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
)

// slowTarget is a target whose passes wait.
type slowTarget struct {
	speculate.Target
	began, goOn chan struct{}
}

type slowPass struct {
	speculate.Pass
	t *slowTarget
}

func (t *slowTarget) NewPass() speculate.Pass { return &slowPass{t.Target.NewPass(), t} }

func (p *slowPass) Run(ctx context.Context, rows []speculate.Rows, taps []int) error {
	select {
	case p.t.began <- struct{}{}:
	default:
	}
	<-p.t.goOn
	return p.Pass.Run(ctx, rows, taps)
}

// A request that is cancelled while it waits leaves the queue at once: while the running requests
// are held, and during a pass.
func TestCancelledInQueue(t *testing.T) {
	for _, during := range []string{"held", "in a pass"} {
		m := open(t)
		target := &slowTarget{speculate.Model(m), make(chan struct{}, 1), make(chan struct{})}
		e, err := engine.New(target, engine.Options{Parallel: 1, Queue: 1, Pages: []*nn.Pages{m.NewCache().Pages()}})
		if err != nil {
			t.Fatal(err)
		}
		first, asked := request(4, 1), make(chan struct{}, 1)
		var held atomic.Bool
		held.Store(during == "held")
		first.Hold = func() bool {
			select {
			case asked <- struct{}{}:
			default:
			}
			return held.Load()
		}
		if err := e.Submit(context.Background(), first); err != nil {
			t.Fatal(err)
		}
		if during == "held" {
			<-asked
		} else {
			<-target.began
		}
		ctx, cancel := context.WithCancel(context.Background())
		second, ended := request(4, 1), make(chan error, 1)
		second.Done = func(err error) { ended <- err }
		if err := e.Submit(ctx, second); err != nil {
			t.Fatal(err)
		}
		if during == "held" {
			<-asked // now the engine sleeps
		}
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: it ended with %v", during, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: it has not ended", during)
		}
		if s := e.Stats(); s.Waiting != 0 || s.Cancelled != 1 {
			t.Errorf("%s: %d requests wait, %d were cancelled", during, s.Waiting, s.Cancelled)
		}
		if err := e.Submit(context.Background(), request(4, 1)); err != nil {
			t.Errorf("%s: its place in the queue is not free: %v", during, err)
		}
		held.Store(false)
		e.Wake()
		close(target.goOn)
		e.Close()
	}
}

// watchedContext counts the functions that wait for its end.
type watchedContext struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

func (c *watchedContext) Done() <-chan struct{} { return c.done }

func (c *watchedContext) AfterFunc(func()) (stop func() bool) {
	c.waiting.Add(1)
	return func() bool { c.waiting.Add(-1); return true }
}

// A context that outlives its requests keeps no reference to them.
func TestContextOutlivesRequests(t *testing.T) {
	ctx := &watchedContext{Context: context.Background(), done: make(chan struct{})}
	e := start(t, open(t), engine.Options{})
	for range 3 {
		r, ended := request(4, 2), make(chan error, 1)
		r.Hold = func() bool { return false }
		r.Done = func(err error) { ended <- err }
		if err := e.Submit(ctx, r); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := ctx.waiting.Load(); n != 0 {
		t.Errorf("%d functions wait for the end of the context", n)
	}
}

// slowEnd is a target whose passes wait when their layers are computed.
type slowEnd struct{ slowTarget }

type slowEndPass struct {
	speculate.Pass
	t *slowEnd
}

func (t *slowEnd) NewPass() speculate.Pass { return &slowEndPass{t.Target.NewPass(), t} }

func (p *slowEndPass) Run(ctx context.Context, rows []speculate.Rows, taps []int) error {
	err := p.Pass.Run(ctx, rows, taps)
	close(p.t.began)
	<-p.t.goOn
	return err
}

// A step that takes long shows that it is making progress.
func TestLayersAreSeen(t *testing.T) {
	m := open(t)
	target := &slowEnd{slowTarget{speculate.Model(m), make(chan struct{}), make(chan struct{})}}
	e, err := engine.New(target, engine.Options{Pages: []*nn.Pages{m.NewCache().Pages()}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := e.Submit(t.Context(), request(4, 1)); err != nil {
		t.Fatal(err)
	}
	<-target.began
	if s := e.Stats(); s.Steps != 0 || s.LastStep.Before(began.Add(-time.Second)) {
		t.Errorf("%d steps, and at %v in the first, which began at %v", s.Steps, s.LastStep, began)
	}
	close(target.goOn)
	e.Close()
}
