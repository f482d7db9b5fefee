package engine

import (
	"os"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/engine/pagestore"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tree"
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
}

// A folder that takes no texts is reported once, until it has taken one.
func TestFailingDiskIsReportedOnce(t *testing.T) {
	m := openTiny(t)
	dir := t.TempDir()
	store, err := pagestore.Open(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	reports := 0
	d := newDisk(store, "", func(error) { reports++ }) // called by one goroutine, which close waits for
	write := func(text int32) {
		tokens := make([]int32, blockRows)
		tokens[0] = text
		c := m.NewCache()
		if err := m.NewPass().Run(t.Context(), []model.Rows{{Cache: c, Tree: tree.Chain(tokens)}}, nil); err != nil {
			t.Fatal(err)
		}
		c.CommitAll()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.waiting = append(d.waiting, save{text: tokens, cache: c})
		d.changed.Broadcast()
		for len(d.waiting) > 0 || d.writing {
			d.changed.Wait()
		}
	}
	write(1)
	for range 2 {
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		write(2)
		write(3)
		if err := os.Rename(dir+"-away", dir); err != nil {
			t.Fatal(err)
		}
		write(4)
	}
	d.close()
	if reports != 2 || store.Stats().Written == 0 {
		t.Errorf("%d reports, %d blocks: want 2 reports", reports, store.Stats().Written)
	}
}
