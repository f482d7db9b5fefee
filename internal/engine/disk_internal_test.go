package engine

import (
	"os"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/engine/pagestore"
)

// If a disk is slow, closing waits for the pending writes for a while, but not for all of them.
func TestCloseWithSlowDisk(t *testing.T) {
	m := openTiny(t)
	dir := t.TempDir()
	store, err := pagestore.Open(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := os.RemoveAll(dir); err != nil { // so that each write is reported, and ends when the test lets it
		t.Fatal(err)
	}
	defer func(before time.Duration) { closeTime = before }(closeTime)
	closeTime = time.Millisecond
	writes, goOn := make(chan error, 1+mostSaves), make(chan struct{})
	d := newDisk(store, "", func(err error) {
		writes <- err
		<-goOn
	})
	tokens := make([]int32, blockRows+1)
	for i := range mostSaves {
		d.mu.Lock()
		d.waiting = append(d.waiting, save{text: tokens, cache: m.NewCache()})
		d.changed.Broadcast()
		d.mu.Unlock()
		if i == 0 {
			<-writes
		}
	}
	ended := make(chan struct{})
	go func() {
		d.close()
		close(ended)
	}()
	left := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.waiting)
	}
	for end := time.Now().Add(20 * time.Second); left() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d texts wait to be written", left())
		}
	}
	close(goOn)
	<-ended
	if len(writes) > 0 {
		t.Error("another text was written")
	}
}
