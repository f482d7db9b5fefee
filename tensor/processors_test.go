package tensor

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// encodedSums has a hash of what every type's encoder makes of blocks that are the same everywhere:
// a file is the same bytes on every processor, though compilers for some fuse what is not held
// apart.
var encodedSums = map[Type]uint64{
	F16:  0x5be9f0ffd1b0eb82,
	BF16: 0x57b11da1e9ad8fa5,
	Q8_0: 0xefa372449c7940e4,
	Q4_0: 0xb54fce44e5a61dc6,
	Q4_1: 0x1a33f76d32681376,
	Q5_0: 0x70b70dd356d48073,
	Q5_1: 0xb546edbad8ca14bb,
	Q4_K: 0x23067af37238cbf8,
	Q5_K: 0xbd294a4e4508fc47,
	Q6_K: 0x9bae45bd40d731d0,
}

func TestEveryProcessorEncodesAlike(t *testing.T) {
	for typ, want := range encodedSums {
		r := rand.New(rand.NewPCG(1, 2))
		h := fnv.New64a()
		x := make([]float32, 256)
		size, _ := typ.Size(len(x))
		dst := make([]byte, size)
		for block := range 2000 {
			step := float32(math.Ldexp(1, -r.IntN(30)-20))
			for i := range x {
				x[i] = float32(int32(r.Uint32())>>r.IntN(20)) * step
				if block%4 == 0 { // few values, so that some lie halfway between two elements
					x[i] = float32(r.IntN(255)-127) * step
				}
			}
			if err := Quantize(typ, x, dst); err != nil {
				t.Fatal(err)
			}
			h.Write(dst)
		}
		if got := h.Sum64(); got != want {
			t.Errorf("%v: %#016x,", typ, got)
		}
	}
}
