// Package filelock gives a lock file to one user at a time, in this process and in others.
//
// The operating system keeps the lock and frees it when the process ends, even if it is killed. The
// file stays. While it is locked it holds, after one byte, the process id. On systems other than
// Linux, macOS, the BSDs and Windows the package locks nothing: everyone gets the lock.
//
// The lock is compatible with Python's filelock, on the same file: flock, or on Windows a lock of the first byte.
package filelock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Lock is a lock that is held.
type Lock struct{ f *os.File }

// HeldError says who holds a lock.
type HeldError struct {
	Path string
	PID  int // of the process; 0: not known
}

func (e *HeldError) Error() string { return fmt.Sprintf("%s is locked by %s", e.Path, e.Holder()) }

// Holder names the process.
func (e *HeldError) Holder() string {
	switch e.PID {
	case 0:
		return "another process"
	case os.Getpid():
		return "this process"
	}
	return fmt.Sprintf("process %d", e.PID)
}

// Take locks the file at path, and creates it if there is none. It does not wait: if another user
// holds the lock, the error is a *HeldError.
func Take(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	switch held, err := tryLock(f); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	case held:
		b, _ := io.ReadAll(io.NewSectionReader(f, 1, 32))    // on Windows others cannot read the locked byte
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b))) // 0 if the other process has not written it yet
		return nil, errors.Join(&HeldError{path, pid}, f.Close())
	}
	_ = f.Truncate(0) // a full disk stores no id: the lock holds without it
	_, _ = fmt.Fprintf(f, " %d\n", os.Getpid())
	return &Lock{f}, nil
}

// Release releases the lock.
func (l *Lock) Release() error { return errors.Join(l.f.Truncate(0), l.f.Close()) }
