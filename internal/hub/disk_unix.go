//go:build linux || darwin || freebsd

package hub

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// freeSpace returns how many bytes may be written to the disk of a folder.
func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// isFull reports whether a write failed for lack of space.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// accessTime returns when a file was last used, as far as the system keeps track of that.
func accessTime(path string) time.Time {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return time.Time{}
	}
	return time.Unix(s.Atim.Unix())
}
