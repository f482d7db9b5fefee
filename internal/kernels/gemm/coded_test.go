package gemm

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// Every function that unpacks a panel of a type of few bits writes what the portable one does, for any bytes.
func TestExpandCoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		typ := rapid.SampledFrom(codedTypes()).Draw(t, "type")
		steps := rapid.IntRange(1, 3).Draw(t, "steps")
		src := make([]byte, steps*Panel*typ.code().Bytes())
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		expand := func(l cpu.Level) []byte {
			defer cpu.Use(l)()
			dst := make([]uint32, steps*super/block*wideWords)
			expandCoded(typ, unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), steps)
			for i, w := range dst {
				if f := math.Float32frombits(w); f != f && i%wideWords < 2*Panel {
					dst[i] = 0 // a scale that is no number
				}
			}
			return unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst))
		}
		levels := cpu.Levels()
		want := expand(levels[0])
		for _, l := range levels {
			if got := expand(l); !bytes.Equal(got, want) {
				for i := range got {
					if got[i] != want[i] {
						t.Fatalf("%v at %v: byte %d of %d is %d, want %d", typ, l, i, len(got), got[i], want[i])
					}
				}
			}
		}
	})
}

func codedTypes() (list []Type) {
	for t := IQ1_S; t < NumTypes; t++ {
		list = append(list, t)
	}
	return list
}
