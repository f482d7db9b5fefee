//go:build unix

package command

import (
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// A terminal that is closed ends a command as SIGTERM does: training saves, a server drains. Shells and the system both
// say that it closes.
func TestTerminalCloses(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored, as under nohup")
	}
	ctx, stop := EndedBy(t.Context(), syscall.SIGTERM)
	defer stop()
	for range 3 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("the command goes on")
		}
	}
	time.Sleep(50 * time.Millisecond) // a signal that kills comes by then
}
