//go:build !(linux || darwin || freebsd || windows)

package hub

import (
	"errors"
	"math"
	"os"
	"syscall"
	"time"
)

func freeSpace(string) (int64, error) { return math.MaxInt64, nil } // unknown

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }

func accessTime(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
