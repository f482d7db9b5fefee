package gemm

import "golang.org/x/sys/unix"

// hugePages asks for large pages. It is advice: a system without them says no, and that is fine.
func hugePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
