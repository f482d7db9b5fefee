//go:build !purego

package gemm

import (
	"math"
	"unsafe"

	"github.com/grovellm/grove/internal/kernels/num"
)

// The processor flushes a result that is subnormal before rounding; the definition flushes one that is subnormal
// after it. So the kernels of bf16 report whether any result was flushed, and in that case write nothing.

// mulBF16 calls the kernel, and reports whether it wrote its results.
func (e *engine) mulBF16(t *tile) bool {
	switch e.id {
	case idBF16Few:
		return mulBF16FewNEON(t) == 0
	case idBF16:
		return mulBF16NEON(t) == 0
	}
	return mulPackedBF16NEON(t) == 0
}

// bf16 multiplies a tile, with some of its steps in plain Go where the kernel flushed a result. It
// starts with the first steps, where sums are smaller than 2^-126, then lets the kernel try again
// from there, and takes more steps each time it fails.
func (e *engine) bf16(t *tile) {
	if e.mulBF16(t) {
		return
	}
	apart := uintptr(8) // bytes from one step's activations to the next step's
	if e.id == idPackedBF16 {
		apart = Panel * 4
	}
	var sums [5 * Panel]float32
	rest := *t
	for n := uintptr(16); ; n *= 2 {
		first := rest
		if n >= rest.n {
			first.steps(e.lanes, apart)
			return
		}
		first.n = n
		first.out = unsafe.Pointer(&sums)
		first.outs = Panel * 4
		first.steps(e.lanes, apart)
		rest.n = rest.n - n
		rest.first = 0
		rest.acc = unsafe.Pointer(&sums)
		rest.w, rest.x = unsafe.Add(rest.w, n*Panel*4), unsafe.Add(rest.x, n*apart)
		if e.mulBF16(&rest) {
			return
		}
	}
}

// steps multiplies a tile of bf16 in plain Go. Activations are pairs of f32 or, in a packed panel,
// where rows lie side by side, of bf16.
func (t *tile) steps(lanes int, apart uintptr) {
	for r := range t.rows {
		out := unsafe.Slice((*float32)(unsafe.Add(t.out, r*t.outs)), lanes)
		if t.first != 0 {
			clear(out)
		} else {
			copy(out, unsafe.Slice((*float32)(unsafe.Add(t.acc, r*Panel*4)), lanes))
		}
		w, x := t.w, unsafe.Add(t.x, r*t.xs)
		for range t.n {
			pair := *(*[2]float32)(x)
			if apart != 8 {
				u := *(*uint32)(x)
				pair = [2]float32{num.BF16(uint16(u)), num.BF16(uint16(u >> 16))}
			}
			for o, u := range unsafe.Slice((*uint32)(w), lanes) {
				sum := fmaFlush(math.Float32frombits(u&0xffff0000), pair[1], out[o])
				out[o] = fmaFlush(math.Float32frombits(u<<16), pair[0], sum)
			}
			w, x = unsafe.Add(w, Panel*4), unsafe.Add(x, apart)
		}
	}
}
