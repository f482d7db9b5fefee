//go:build unix

package gemm

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
	"weak"

	"golang.org/x/sys/unix"
)

// An arena is memory outside the Go heap that holds the weights of many matrices end to end. There,
// gigabytes neither affect the collector's pace nor come in small pages: when streaming from DRAM
// through 4 KiB pages, a prefetch that misses the TLB comes too late, and a matrix that ends within
// a large page (2 MiB) would have its tail in small ones. An arena is freed with its last matrix.
type arena struct {
	free []byte // not yet handed out; zero
}

const (
	hugePage  = 2 << 20
	arenaSize = 64 << 20 // of address space: memory is taken only when written to
	pageSize  = 4 << 10
)

var arenas struct {
	sync.Mutex
	last weak.Pointer[arena] // the one with room, if it is still alive
}

// allocate returns n zero bytes on a page boundary, which live as long as owner.
func allocate(n int) (data []byte, owner any, err error) {
	size := (n + pageSize - 1) &^ (pageSize - 1)
	arenas.Lock()
	defer arenas.Unlock()
	a := arenas.last.Value()
	if a == nil || len(a.free) < size {
		b, err := newArena(size)
		if err != nil {
			return nil, nil, fmt.Errorf("no memory for %d bytes of weights: %w", n, err)
		}
		if a == nil || len(b.free)-size > len(a.free) {
			arenas.last = weak.Make(b)
		}
		a = b
	}
	data, a.free = a.free[:n:n], a.free[size:]
	return data, a, nil
}

// newArena maps an arena with room for size bytes that starts on a large page.
func newArena(size int) (*arena, error) {
	size = max(arenaSize, (size+hugePage-1)&^(hugePage-1))
	m, err := unix.Mmap(-1, 0, size+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(m))) & (hugePage - 1))
	a := &arena{free: m[off : off+size]}
	hugePages(a.free)
	runtime.AddCleanup(a, func(m []byte) { unix.Munmap(m) }, m)
	return a, nil
}
