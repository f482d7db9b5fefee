//go:build !unix

package gemm

import "unsafe"

// allocate returns n zero bytes aligned to a cache line, which live as long as owner.
func allocate(n int) (data []byte, owner any, err error) {
	b := make([]byte, n+63)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[off : off+n : off+n], nil, nil
}
