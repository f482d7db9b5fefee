package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/nn"
)

// Memory is made ready when requests have ended, and takes nothing from them: each request that arrives meanwhile ends.
func TestMemoryIsReady(t *testing.T) {
	for _, shape := range []string{"tiny-qwen3", "tiny-gemma3", "tiny-qwen35"} {
		m := openShape(t, shape)
		pages := m.NewCache().Pages()
		const rows = 8 * nn.PageRows
		e := start(t, m, engine.Options{Ready: rows})
		for n := range 20 {
			done := make(chan error, 1)
			r := request(3+n, 1+5*n)
			r.Done = func(err error) { done <- err }
			if err := e.Submit(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: request %d does not end", shape, n)
			}
			if n%4 > 0 {
				continue
			}
			for !e.Rests() {
				time.Sleep(time.Millisecond)
			}
			if pages.Ready(rows) {
				t.Errorf("%s: there is no memory for %d rows", shape, rows)
			}
		}
		e.Close()
	}
}

// The memory that is made ready and that ended requests left is no more than they may take: an idle
// server does not grow beyond that, or it would be killed in a container that has no more.
func TestReadyMemoryIsBounded(t *testing.T) {
	m := openShape(t, "tiny-qwen3")
	pages := m.NewCache().Pages()
	const rows = 12 * nn.PageRows
	e := start(t, m, engine.Options{Ready: rows, CacheMemory: rows * int64(pages.RowBytes())})
	done := make(chan error, 1)
	r := request(7*nn.PageRows, 8)
	r.Done = func(err error) { done <- err }
	if err := e.Submit(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for !e.Rests() {
		time.Sleep(time.Millisecond)
	}
	missing := 0
	for pages.Ready(rows) {
		missing++
	}
	if free := 12 - missing; free > 5 {
		t.Errorf("%d pages are free beside 7 in use: want 12 together", free)
	}
	e.Close()
}

// An engine that is making memory ready can be closed at once.
func TestClosingDoesNotWaitForMemory(t *testing.T) {
	m := open(t)
	e := start(t, m, engine.Options{Ready: 1 << 30})
	done := make(chan error, 1)
	r := request(3, 5)
	r.Done = func(err error) { done <- err }
	if err := e.Submit(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	e.Close()
	if n := m.NewCache().Pages().InUse(); n != 0 {
		t.Errorf("%d bytes are in use after Close", n)
	}
}
