package gemm

import "unsafe"

// Memory returns n zero bytes on a page boundary of the system, as for weights. It is for keys and
// values, which are streamed in the same way. They live as long as owner.
func Memory(n int) (data []byte, owner any) {
	data, owner, err := allocate(n)
	if err != nil {
		data = make([]byte, n)
		return data, data
	}
	return data, owner
}

// Floats is Memory for n numbers.
func Floats(n int) (data []float32, owner any) {
	b, owner := Memory(4 * n)
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), n), owner
}
