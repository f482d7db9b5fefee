// Package testfile keeps tests from waiting for files and for the garbage collector. A test package that imports it
// syncs none of the files that it writes: they survive a killed process, and need not survive a crash of the machine.
// It collects garbage when memory is three times what lives, not twice: most tests keep a few megabytes of it.
package testfile

import (
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

func init() {
	atomicfile.SkipSync()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}

// Test is a test of the packages testing and rapid.
type Test interface {
	Helper()
	Fatal(args ...any)
}

// Write writes a file that is old enough to be opened at once (see package infile).
func Write(t Test, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

// Pipe makes a named pipe. It reports whether it succeeded.
func Pipe(path string) bool { return exec.Command("mkfifo", path).Run() == nil }
