//go:build linux

package simd

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// fence hands out slices that end, or begin, where memory that cannot be read begins or ends.
type fence struct {
	t    *testing.T
	free map[int][][]byte // by size
	used [][]byte
}

func (f *fence) slice(n int, atEnd bool) []float32 {
	page := os.Getpagesize()
	size := max((4*n+page-1)/page, 1) * page
	b := f.memory(page, size)
	f.used = append(f.used, b)
	at := page
	if atEnd {
		at += size - 4*n
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[at])), n)[:n:n]
}

// memory is size bytes between two pages that cannot be read.
func (f *fence) memory(page, size int) []byte {
	if l := f.free[size]; len(l) > 0 {
		f.free[size] = l[:len(l)-1]
		return l[len(l)-1]
	}
	b, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { syscall.Munmap(b) })
	for _, outside := range [][]byte{b[:page], b[page+size:]} {
		if err := syscall.Mprotect(outside, syscall.PROT_NONE); err != nil {
			f.t.Fatal(err)
		}
	}
	return b
}

// reuse takes all slices back.
func (f *fence) reuse() {
	page := os.Getpagesize()
	for _, b := range f.used {
		size := len(b) - 2*page
		f.free[size] = append(f.free[size], b)
	}
	f.used = f.used[:0]
}

// What lies beyond an operand is not read either: it may be no memory at all.
func TestNothingBeyondIsRead(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		f := &fence{t: t, free: map[int][][]byte{}}
		for _, op := range ops {
			for n := range 70 {
				s := &source{Rand: rand.New(rand.NewPCG(1, uint64(n))), place: f.slice}
				op.run(s, n)
				f.reuse()
			}
		}
	})
}
