//go:build unix

package engine_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/engine/pagestore"
	"github.com/grovellm/grove/internal/nn"
)

// A request that runs alone does not fail because of the memory of a prefix that is being read for another.
func TestRequestDuringRestore(t *testing.T) {
	run, dir, _ := openStored(t, "tiny-qwen3", nn.KVF32, 500*4*2*64*2*4) // 500 rows
	long := request(440, 2)
	run(func(e *engine.Engine) { generated(t, e, long) })
	const block = 4 * nn.PageRows
	second := pagestore.Root("tiny-qwen3", "").Next(long.Prompt[:block]).Next(long.Prompt[block : 2*block])
	path := filepath.Join(dir, hex.EncodeToString(second[:])+".kv")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil { // reading it waits for the test
		t.Skip(err)
	}
	run(func(e *engine.Engine) {
		alone := request(3, 420)
		ended, others := make(chan error, 1), make(chan error, 2)
		var goes atomic.Bool
		alone.Hold = func() bool { return !goes.Load() }
		alone.Done = func(err error) { ended <- err }
		if err := e.Submit(t.Context(), alone); err != nil {
			t.Fatal(err)
		}
		long.Done = func(err error) { others <- err }
		go func() {
			if err := e.Submit(t.Context(), long); err != nil {
				others <- err
			}
		}()
		file, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the reader
		if err != nil {
			t.Fatal(err)
		}
		goes.Store(true)
		e.Wake()
		if err := <-ended; err != nil {
			t.Errorf("the request that runs alone: %v", err)
		}
		file.Close()
		if err := <-others; err != nil {
			t.Errorf("the other: %v", err)
		}
	})
}
