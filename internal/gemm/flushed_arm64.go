//go:build !purego

package gemm

import (
	"math"
	"unsafe"

	"github.com/grovellm/grove/internal/num"
)

// bf16 multiplies a tile of bf16 in plain Go. The processor flushes a result that is subnormal before it is rounded, the
// definition one that is afterwards, and so a kernel that saw one flushed leaves the tile to this: sums of less than 2^-126 are
// next to never. Activations of a step are apart bytes from those before: pairs of f32, or of bf16 in a packed panel, whose
// rows lie side by side.
func (t *tile) bf16(lanes, apart int) {
	for r := range t.rows {
		out := unsafe.Slice((*float32)(unsafe.Add(t.out, r*t.outs)), lanes)
		if t.first != 0 {
			clear(out)
		} else {
			copy(out, unsafe.Slice((*float32)(unsafe.Add(t.acc, r*Panel*4)), lanes))
		}
		w, x := t.w, unsafe.Add(t.x, r*t.xs)
		for range t.n {
			var x0, x1 float32
			if apart == 8 {
				pair := (*[2]float32)(x)
				x0, x1 = pair[0], pair[1]
			} else {
				pair := (*[2]uint16)(x)
				x0, x1 = num.BF16(pair[0]), num.BF16(pair[1])
			}
			for o, u := range unsafe.Slice((*uint32)(w), lanes) {
				sum := fmaFlush(math.Float32frombits(u&0xffff0000), x1, out[o])
				out[o] = fmaFlush(math.Float32frombits(u<<16), x0, sum)
			}
			w, x = unsafe.Add(w, Panel*4), unsafe.Add(x, apart)
		}
	}
}
