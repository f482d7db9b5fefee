//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly || solaris

package mmap

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int) (*File, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOSYS) {
		return readFile(f, size) // a file system that cannot map
	}
	if err != nil {
		return nil, err
	}
	return &File{Data: b, mapped: true}, nil
}

func advise(b []byte, a Advice) {
	how := unix.MADV_SEQUENTIAL
	switch a {
	case WillNeed:
		how = unix.MADV_WILLNEED
	case DontNeed:
		how = unix.MADV_DONTNEED
	}
	_ = unix.Madvise(b, how) // advice only: a refusal changes nothing the caller relies on
}

func unmap(b []byte) error { return unix.Munmap(b) }
