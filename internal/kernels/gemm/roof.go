package gemm

import (
	"encoding/binary"
	"runtime"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/num"
)

// ReadKernel reads p once, in order, with the widest loads of the active level, prefetching as the
// product kernels do, and returns the exclusive or of its little-endian 8-byte words. Its time
// gives the bandwidth that a product could reach at best.
func ReadKernel(p []byte) uint64 {
	sum, n := readAsm(p, cpu.Active())
	p = p[n:]
	for ; len(p) >= 8; p = p[8:] {
		sum ^= binary.LittleEndian.Uint64(p)
	}
	for i, b := range p {
		sum ^= uint64(b) << (i * 8)
	}
	return sum
}

// PeakKernel runs the multiply instruction that the active level uses for t for iters iterations,
// only in registers and in enough independent chains to fill the unit. It returns the number of
// operations; a multiplication and its addition count as two.
func PeakKernel(t Type, iters int) (ops int) {
	if iters > 0 {
		if each := peakAsm(t, cpu.Active(), iters); each > 0 {
			return iters * each
		}
	}
	return peakPortable(t, iters)
}

func peakPortable(t Type, iters int) (ops int) {
	if t.integer() {
		var acc [Panel]int32
		for i := range iters {
			for o := range acc {
				acc[o] += int32(uint8(o)) * int32(int8(i))
			}
		}
		runtime.KeepAlive(&acc)
		return iters * Panel * 2
	}
	var acc [Panel]float32
	for i := range iters {
		for o := range acc {
			acc[o] = num.FMA(float32(o), float32(i&7), acc[o])
		}
	}
	runtime.KeepAlive(&acc)
	return iters * Panel * 2
}
