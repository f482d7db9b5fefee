package nn

import (
	"fmt"

	"github.com/grovellm/grove/internal/kernels/gemm"
)

// KVType is what a cache stores keys and values as.
type KVType uint8

const (
	KVAuto KVType = iota // as goes with the weights: see Of
	KVF32
	KVBF16 // half the memory, and attention multiplies bf16: queries and weights are rounded too
	KVQ8   // 34/128 of the memory: int8 with a scale for 32 numbers; queries are rounded so too, weights to bf16
)

var kvNames = [...]string{"auto", "f32", "bf16", "q8_0"}

func (t KVType) String() string { return kvNames[t] }

// panels says that pages hold panels of gemm, and not f32.
func (t KVType) panels() bool { return t == KVBF16 || t == KVQ8 }

// ParseKVType is the type of a name: auto, f32, bf16 or q8_0. An empty one is auto.
func ParseKVType(name string) (KVType, error) {
	if name == "" {
		return KVAuto, nil
	}
	for i, n := range kvNames {
		if n == name {
			return KVType(i), nil
		}
	}
	return 0, fmt.Errorf("%q is no type of keys and values: want auto, f32, bf16 or q8_0", name)
}

// Of is t, or, where it is KVAuto, the type for a network of such blocks: f32 where their weights
// are f32 or f16, which hold more than bf16 does, else bf16.
func (t KVType) Of(blocks []Block) KVType {
	if t != KVAuto {
		return t
	}
	for i := range blocks {
		w := blocks[i].Latent.down()
		if len(blocks[i].QKV) > 0 {
			w = blocks[i].QKV[0].W
		}
		if w == nil { // it has no attention
			continue
		}
		switch w.Type() {
		case gemm.F32, gemm.F16:
			return KVF32
		}
		return KVBF16
	}
	return KVF32
}
