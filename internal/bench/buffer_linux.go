package bench

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// newBuffer returns n bytes on large pages, like weights: on small pages, reading would be slower
// than the passes that it is compared with.
func newBuffer(n int) (b []byte, free func(), err error) {
	b, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("bench: no memory for a buffer of %d bytes to read: %w", n, err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // only advice: a system without large pages refuses
	return b, func() { _ = unix.Munmap(b) }, nil
}
