package engine_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/grovellm/grove/internal/engine"
)

// A caller's goroutine takes a step's tokens before the next steps, even where there is one processor, which the
// engine never leaves.
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
