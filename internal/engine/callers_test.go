package engine_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/grovellm/grove/internal/engine"
)

// A caller's goroutine takes a step's tokens before the next steps, even if there is one processor,
// which the engine never leaves.
func TestCallersGetTokensBetweenSteps(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	e := start(t, open(t), engine.Options{})
	const callers, tokens = 3, 200
	var done [callers]chan error
	var late [callers]int64
	for i := range callers {
		var emitted int64
		var taken atomic.Int64
		stream := make(chan int, tokens)
		done[i] = make(chan error, 1)
		r := request(3+i, tokens)
		r.Step = func(u *engine.Update) {
			late[i] = max(late[i], emitted-taken.Load())
			emitted += int64(len(u.Tokens))
			stream <- len(u.Tokens)
		}
		r.Done = func(err error) { close(stream); done[i] <- err }
		go func() {
			for n := range stream {
				taken.Add(int64(n))
			}
		}()
		if err := e.Submit(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range callers {
		if err := <-done[i]; err != nil {
			t.Fatal(err)
		}
		if late[i] > 4 {
			t.Errorf("caller %d was %d tokens behind", i, late[i])
		}
	}
}

// A prompt that takes a few milliseconds is read at once alongside requests that decode, whatever share
// of the time it takes meanwhile. Here a pass of the prompt takes about as long as twenty plain ones.
func TestShortPromptsAreReadAtOnce(t *testing.T) {
	e := start(t, open(t), engine.Options{})
	ended := make(chan error, 2)
	warm := make(chan struct{})
	var decoded, before, steps atomic.Int64
	a := request(3, 400)
	a.Step = func(u *engine.Update) {
		if decoded.Add(1) == 50 {
			close(warm)
		}
	}
	a.Done = func(err error) { ended <- err }
	if err := e.Submit(context.Background(), a); err != nil {
		t.Fatal(err)
	}
	<-warm
	b := request(400, 1)
	b.Prompt[0] = 49 // it begins like no other
	b.Step = func(*engine.Update) { steps.Store(decoded.Load() - before.Load()) }
	b.Done = func(err error) { ended <- err }
	before.Store(decoded.Load())
	if err := e.Submit(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if n := steps.Load(); n > 24 {
		t.Errorf("%d tokens of the other request came before the prompt's first: want a few", n)
	}
}

// An engine that is draining accepts all choices of a call of which one has started, and nothing else.
func TestDrainingTakesWholeCalls(t *testing.T) {
	e := start(t, open(t), engine.Options{})
	call, ended := new(engine.Call), make(chan error, 2)
	var released atomic.Bool
	submit := func() error {
		r := request(4, 2)
		r.Call = call
		r.Hold = func() bool { return !released.Load() }
		r.Done = func(err error) { ended <- err }
		return e.Submit(t.Context(), r)
	}
	if err := submit(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan error, 1)
	go func() { drained <- e.Drain(t.Context()) }()
	for !errors.Is(e.Submit(t.Context(), request(4, 2)), engine.ErrClosed) {
		runtime.Gosched()
	}
	if err := submit(); err != nil {
		t.Errorf("a choice of a call under way: %v", err)
		ended <- nil
	}
	released.Store(true)
	e.Wake()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if err := submit(); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a choice when all have ended: %v", err)
	}
}
