package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/cases"
)

// open returns a small random model.
func open(t *testing.T) *model.Model {
	t.Helper()
	return openShape(t, "tiny-qwen3")
}

func openShape(t *testing.T, name string) *model.Model {
	t.Helper()
	shape, err := synth.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func start(t *testing.T, m *model.Model, o engine.Options) *engine.Engine {
	t.Helper()
	o.Pages = []*nn.Pages{m.NewCache().Pages()}
	e, err := engine.New(speculate.Model(m), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// request asks for n tokens after a prompt of prompt tokens.
func request(prompt, n int) engine.Request {
	r := engine.Request{Request: speculate.Request{MaxTokens: n}}
	for i := range prompt {
		r.Prompt = append(r.Prompt, int32(i*7%50))
	}
	return r
}

// runInOrder submits requests while another one holds the only place, and returns the names of the
// requests in the order in which they ended.
func runInOrder(t *testing.T, e *engine.Engine, list []engine.Request, names []string) (order []string) {
	t.Helper()
	release := hold(t, e, engine.Request{})
	var all sync.WaitGroup
	submit := func(r engine.Request, done func(error)) {
		all.Add(1)
		r.Done = func(err error) { done(err); all.Done() }
		if err := e.Submit(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range list {
		submit(r, func(err error) {
			if err != nil {
				t.Error(err)
			}
			order = append(order, names[i])
		})
	}
	release()
	all.Wait()
	return order
}

// hold submits a request that keeps its place, once it runs, until it is released. It waits until the request runs.
func hold(t *testing.T, e *engine.Engine, of engine.Request) (release func()) {
	t.Helper()
	r := request(3, 1)
	r.Tenant, r.Key = of.Tenant, of.Key
	var released atomic.Bool
	running := make(chan struct{})
	runs := sync.OnceFunc(func() { close(running) })
	r.Hold = func() bool { runs(); return !released.Load() }
	if err := e.Submit(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	<-running // before that, others could take the place
	return func() { released.Store(true); e.Wake() }
}

// Requests of a higher priority start first, then those of the least served tenant, then the earliest.
func TestOrder(t *testing.T) {
	e := start(t, open(t), engine.Options{Parallel: 1})
	var list []engine.Request
	add := func(tenant string, priority int) {
		r := request(4, 10)
		r.Tenant, r.Priority = tenant, priority
		list = append(list, r)
	}
	add("a", 0)
	add("a", 0)
	add("b", 0)
	add("a", 5)
	add("b", 0)
	got := runInOrder(t, e, list, []string{"a1", "a2", "b1", "first", "b2"})
	if want := []string{"first", "b1", "a1", "b2", "a2"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// Of requests of one priority and tenant, the one with the earliest deadline starts first, and those
// without one start in order of arrival. A deadline changes nothing between priorities.
func TestDeadlines(t *testing.T) {
	now, e := time.Now(), start(t, open(t), engine.Options{Parallel: 1})
	cases.Check(t, 40, func(rt *rapid.T) {
		type asked struct{ priority, deadline, number int }
		var list []engine.Request
		var want []asked
		var names []string
		for i := range rapid.IntRange(1, 8).Draw(rt, "requests") {
			a := asked{rapid.IntRange(0, 1).Draw(rt, "priority"), rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(rt, "deadline"), i}
			r := request(4, 3)
			r.Priority = a.priority
			if a.deadline > 0 {
				r.Deadline = now.Add(time.Duration(a.deadline) * time.Hour)
			} else {
				a.deadline = math.MaxInt
			}
			list = append(list, r)
			want = append(want, a)
			names = append(names, fmt.Sprint(i))
		}
		slices.SortFunc(want, func(a, b asked) int {
			return cmp.Or(b.priority-a.priority, cmp.Compare(a.deadline, b.deadline), a.number-b.number)
		})
		for i, name := range runInOrder(t, e, list, names) {
			if name != fmt.Sprint(want[i].number) {
				rt.Fatalf("number %d started at place %d, want the order %v", i, i, want)
			}
		}
	})
}

// A prompt that begins like an earlier one is computed only from where they differ, but not if that
// was another tenant's. Requests that arrive together wait for the one that computes what they share.
func TestPrefixes(t *testing.T) {
	m := open(t)
	e := start(t, m, engine.Options{})
	run := func(tenant string, prompts ...int) (reused []int) {
		var all sync.WaitGroup
		reused = make([]int, len(prompts))
		for at, n := range prompts {
			r := request(n, 3)
			r.Tenant = tenant
			all.Add(1)
			r.Step = func(u *engine.Update) { reused[at] = u.Stats.Reused }
			r.Done = func(error) { all.Done() }
			if err := e.Submit(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		}
		all.Wait()
		return reused
	}
	if got := run("a", 200); !slices.Equal(got, []int{0}) {
		t.Errorf("the first reuses %d rows", got)
	}
	if got := run("a", 100, 240); !slices.Equal(got, []int{99, 200}) {
		t.Errorf("the next reuse %d rows, want 99 and 200", got)
	}
	if got := run("b", 230, 230, 230); got[0] != 0 || got[1] < 200 || got[2] < 200 {
		t.Errorf("another tenant's reuse %d rows, want 0 and nearly all of 230, twice", got)
	}
	before := e.Stats()
	e.Forget("a")
	if after := e.Stats(); after.PrefixBytes >= before.PrefixBytes {
		t.Errorf("after Forget prefixes have %d bytes, before it %d", after.PrefixBytes, before.PrefixBytes)
	}
	if got := run("a", 50); !slices.Equal(got, []int{0}) {
		t.Errorf("after Forget %d rows are reused", got)
	}
}

// With memory for one and a half texts, two requests both run to their ends, one of them after it
// was stopped. A request that can never fit is refused.
func TestPreemption(t *testing.T) {
	m := open(t)
	pages := m.NewCache().Pages()
	limit := int64(pages.RowBytes()) * 420
	e := start(t, m, engine.Options{CacheMemory: limit})
	var all sync.WaitGroup
	texts := make([][]int32, 2)
	for i := range texts {
		r := request(30+i, 200)
		r.Step = func(u *engine.Update) { texts[i] = append(texts[i], u.Tokens...) }
		all.Add(1)
		r.Done = func(err error) {
			if err != nil {
				t.Error(err)
			}
			all.Done()
		}
		if err := e.Submit(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	s := e.Stats()
	if s.Preempted == 0 || len(texts[0]) != 200 || len(texts[1]) != 200 || s.CacheBytes > limit {
		t.Errorf("%d and %d tokens, %+v", len(texts[0]), len(texts[1]), s)
	}
	if _, err := engine.New(speculate.Model(m), engine.Options{CacheMemory: 100, Pages: []*nn.Pages{pages}}); err == nil {
		t.Error("an engine with memory for no text")
	}
}

// A full queue refuses requests, a context that ends removes a waiting request, and a closed engine accepts none.
func TestRefusals(t *testing.T) {
	e := start(t, open(t), engine.Options{Parallel: 1, Queue: 1})
	ctx, cancel := context.WithCancel(context.Background())
	var ends []error
	var mu sync.Mutex
	var all sync.WaitGroup
	submit := func() error {
		r := request(4, 5)
		r.Hold = func() bool { return true }
		r.Done = func(err error) {
			mu.Lock()
			ends = append(ends, err)
			mu.Unlock()
			all.Done()
		}
		all.Add(1)
		err := e.Submit(ctx, r)
		if err != nil {
			all.Done()
		}
		return err
	}
	if err := submit(); err != nil {
		t.Fatal(err)
	}
	for e.Stats().Running == 0 {
		continue
	}
	if err := submit(); err != nil {
		t.Fatal(err)
	}
	if err := submit(); !errors.Is(err, engine.ErrFull) {
		t.Errorf("a third request: %v", err)
	}
	cancel()
	all.Wait()
	if len(ends) != 2 || !errors.Is(ends[0], context.Canceled) || !errors.Is(ends[1], context.Canceled) {
		t.Errorf("they ended with %v", ends)
	}
	if err := e.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	if err := e.Submit(context.Background(), request(4, 1)); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after Drain: %v", err)
	}
}

// While little memory keeps requests from running, no more of them wait than the queue has places
// and Parallel leaves free.
func TestQueueIsBounded(t *testing.T) {
	m := open(t)
	o := engine.Options{Parallel: 4, Queue: 2, CacheMemory: int64(m.NewCache().Pages().RowBytes()) * 150}
	e := start(t, m, o)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	accepted := 0
	for range 20 {
		r := request(100, 5)
		r.Hold = func() bool { return true }
		switch err := e.Submit(ctx, r); {
		case err == nil:
			accepted++
		case !errors.Is(err, engine.ErrFull):
			t.Fatal(err)
		}
		for e.Stats().Running == 0 {
			continue
		}
	}
	if want := o.Parallel + o.Queue; accepted != want {
		t.Errorf("%d requests were accepted, want %d", accepted, want)
	}
}

// Requests of a call that take turns, so that one is held, run to their ends even if there is only
// one place or no memory for both texts.
func TestTurns(t *testing.T) {
	m := open(t)
	row := int64(m.NewCache().Pages().RowBytes())
	for name, o := range map[string]engine.Options{"place": {Parallel: 1}, "memory": {CacheMemory: 140 * row}} {
		e := start(t, m, o)
		var turn, left atomic.Int32
		var call engine.Call
		left.Store(2)
		texts := make([][]int32, 2)
		ended := make(chan error, 2)
		for i := range int32(2) {
			r := request(30, 50)
			r.Fresh, r.Call = true, &call
			r.Hold = func() bool { return turn.Load()%2 != i && left.Load() == 2 }
			r.Step = func(u *engine.Update) {
				texts[i] = append(texts[i], u.Tokens...)
				turn.Add(1)
				go e.Wake()
			}
			r.Done = func(err error) {
				left.Add(-1)
				go e.Wake()
				ended <- err
			}
			if err := e.Submit(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		for range texts {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		if len(texts[0]) != 50 || !slices.Equal(texts[0], texts[1]) {
			t.Errorf("%s: %v", name, texts)
		}
	}
}

// A request does not wait for another one to read a prompt that a third, running one already has.
func TestPrefixOfRunning(t *testing.T) {
	e := start(t, open(t), engine.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var goesOn atomic.Bool
	begun := make(chan struct{}, 1)
	long := request(200, 700)
	long.Step = func(*engine.Update) { goesOn.Store(true); begun <- struct{}{} }
	long.Hold = func() bool { return goesOn.Load() && ctx.Err() == nil }
	held := request(200, 1)
	held.Fresh, held.Hold = true, func() bool { return ctx.Err() == nil }
	ended := make(chan error, 1)
	last := request(200, 1)
	last.Done = func(err error) { ended <- err }
	for _, r := range []engine.Request{long, held, last} {
		if err := e.Submit(ctx, r); err != nil {
			t.Fatal(err)
		}
		if r.Step != nil {
			<-begun
		}
	}
	select {
	case err := <-ended:
		if s := e.Stats(); err != nil || s.CachedTokens != 199 {
			t.Errorf("%d tokens were cached: %v", s.CachedTokens, err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the last request waits for the one that is held")
	}
}

// A request that was stopped for lack of memory does not start again, only to be stopped, before
// one of the others has ended.
func TestNotStoppedAgainAndAgain(t *testing.T) {
	m := open(t)
	limit := int64(m.NewCache().Pages().RowBytes()) * 720
	e := start(t, m, engine.Options{CacheMemory: limit, Loop: speculate.Options{Chunk: nn.PageRows}})
	var all sync.WaitGroup
	submit := func(r engine.Request) {
		all.Add(1)
		r.Done = func(err error) {
			if err != nil {
				t.Error(err)
			}
			all.Done()
		}
		if err := e.Submit(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	var held atomic.Bool
	short, begun := request(10, 20), make(chan struct{})
	hold := sync.OnceFunc(func() { held.Store(true); close(begun) })
	short.Hold, short.Step = held.Load, func(*engine.Update) { hold() }
	submit(short)
	<-begun
	submit(request(600, 5))
	for end := time.Now().Add(time.Second); e.Stats().Preempted < 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	held.Store(false)
	e.Wake()
	all.Wait()
	if n := e.Stats().Preempted; n == 0 || n > 2 {
		t.Errorf("requests were stopped %d times, want 1 or 2", n)
	}
}

// What a request computed serves others after its context has ended, whatever cause was given.
func TestPrefixOfCancelled(t *testing.T) {
	for _, cause := range []error{nil, errors.New("the caller has enough")} {
		e := start(t, open(t), engine.Options{})
		ctx, cancel := context.WithCancelCause(context.Background())
		r, done := request(100, 500), make(chan error, 1)
		r.Step = func(*engine.Update) { cancel(cause) }
		r.Done = func(err error) { done <- err }
		if err := e.Submit(ctx, r); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, context.Cause(ctx)) {
			t.Errorf("it ended with %v", err)
		}
		if e.Stats().PrefixBytes == 0 {
			t.Errorf("cause %v: nothing is kept", cause)
		}
	}
}
