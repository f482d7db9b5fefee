//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || solaris || windows)

package mmap

import "os"

func mapFile(f *os.File, size int) (*File, error) { return readFile(f, size) }

func advise([]byte, Advice) {}

func unmap([]byte) error { return nil }
