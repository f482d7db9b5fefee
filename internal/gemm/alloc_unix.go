//go:build unix

package gemm

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// allocate returns n zero bytes outside the Go heap, so that gigabytes of weights neither
// count towards the collector's pace nor come in 4 KiB pages where the system has larger
// ones. A large block starts on a large page; the pages skipped for that are never touched.
func allocate(n int) (data []byte, free func(), err error) {
	size := n
	if n >= hugePage {
		size += hugePage
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("no memory for %d bytes of weights: %w", n, err)
	}
	off := 0
	if n >= hugePage {
		off = int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (hugePage - 1))
		hugePages(b[off : off+n])
	}
	return b[off : off+n : off+n], func() { unix.Munmap(b) }, nil
}
