//go:build linux

package filelock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/grovellm/grove/internal/files/filelock"
)

// On a full disk, which the folder that is locked may have filled, the lock is taken without the
// process id. (In a process of its own, with a limit on the size of files.)
func TestDiskFull(t *testing.T) {
	const variable = "FILELOCK_FULL_PATH"
	path := os.Getenv(variable)
	if path == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestDiskFull$")
		c.Env = append(os.Environ(), variable+"="+filepath.Join(t.TempDir(), "lock"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{}); err != nil {
		t.Fatal(err)
	}
	l, err := filelock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	var held *filelock.HeldError
	if _, err := filelock.Take(path); !errors.As(err, &held) || held.PID != 0 {
		t.Errorf("a second lock: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}
