package gemm

import "golang.org/x/sys/unix"

// hugePages requests large pages. It is only advice: a system without them refuses, which does no harm.
func hugePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
