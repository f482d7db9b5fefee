package nn

import (
	"fmt"

	"github.com/grovellm/grove/internal/kernels/gemm"
)

// KVType is the type in which a cache stores keys and values.
type KVType uint8

const (
	KVAuto KVType = iota // chosen by the type of the weights: see Of
	KVF32
	KVBF16 // half the memory, and attention multiplies bf16: queries and weights are rounded too
	KVQ8   // 34/128 of the memory: int8 with one scale for 32 numbers; queries are rounded the same way, weights to bf16
)

var kvNames = [...]string{"auto", "f32", "bf16", "q8_0"}

func (t KVType) String() string { return kvNames[t] }

// panels reports whether pages hold panels of gemm rather than f32.
func (t KVType) panels() bool { return t == KVBF16 || t == KVQ8 }

// ParseKVType returns the type with the given name: auto, f32, bf16 or q8_0. An empty name means auto.
func ParseKVType(name string) (KVType, error) {
	if name == "" {
		return KVAuto, nil
	}
	for i, n := range kvNames {
		if n == name {
			return KVType(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a type of keys and values: want auto, f32, bf16 or q8_0", name)
}

// Of returns t or, if t is KVAuto, the type for a network of the given blocks: f32 if their weights
// are f32 or f16, which are more precise than bf16, else bf16.
func (t KVType) Of(blocks []Block) KVType {
	if t != KVAuto {
		return t
	}
	for i := range blocks {
		w := blocks[i].Latent.down()
		if len(blocks[i].QKV) > 0 {
			w = blocks[i].QKV[0].W
		}
		if w == nil { // the block has no attention
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
