package simd

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// goldenSums has a hash of what every operation leaves for the operands of cases that are the same
// everywhere: law 1 across processors, which a comparison of the levels of one processor cannot see.
// The portable code is compiled anew for each, and a compiler may fuse what is not held apart.
var goldenSums = map[string]uint64{
	"Add":        0xb681d28f7686e708,
	"BlendRows":  0x7741944c50431bf5,
	"Scale":      0x20fd8b65d961e7c6,
	"Axpy":       0xddec78fd8d1c22d1,
	"sum":        0x978d76dd7333cf3e,
	"sumSquares": 0xb703ff1552815e11,
	"RMSNorm":    0x3ef2bfecb71be8ea,
	"LayerNorm":  0x181748bef5bec60d,
	"RopeHalf":   0x60f711f2aaf53216,
	"RopePairs":  0x891e8e7405df75c6,
	"Exp":        0x72edbf557bd06dca,
	"Softmax":    0xd63c0e3136eb6179,
	"LogSumExp":  0x1ffad9f929d2580e,
	"sumExp":     0x673c2d9c3b056e4f,
	"expSum":     0x331c970ae5ba9ac6,
	"SiLUMul":    0x9cda9af372bc82e5,
	"GELUMul":    0x3096f8ade15a94a0,
	"GELU":       0x2edb5c97da6c5b39,
	"inplace":    0x90b711a2303f19d4,
	"ArgMax":     0xf1dcbd5407797215,
	"searches":   0x3ad110124bf1847f,
	"TopK":       0xf8339c57905d76de,
	"Scores":     0x54f89b3fe3574264,
	"Mix":        0x7f2d310bb629d7a2,
}

func TestEveryProcessorSameBits(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, op := range ops {
			h := fnv.New64a()
			put := func(x []float32) {
				for _, v := range x {
					u := math.Float32bits(v)
					if v != v {
						u = math.Float32bits(float32(math.NaN()))
					}
					h.Write(binary.LittleEndian.AppendUint32(nil, u))
				}
			}
			for n := range 70 {
				for seed := range uint64(10) {
					s := &source{Rand: rand.New(rand.NewPCG(seed, uint64(n))), wild: seed%5 == 4, exact: true}
					put(op.run(s, n))
					for _, sp := range s.spans {
						put(sp.mid)
					}
				}
			}
			if got := h.Sum64(); got != goldenSums[op.name] {
				t.Errorf("%q: %#016x,", op.name, got)
			}
		}
	})
}
