package nn

import (
	"fmt"

	"github.com/grovellm/grove/internal/gemm"
)

// KVType is what a cache stores keys and values as.
type KVType uint8

const (
	KVAuto KVType = iota // as goes with the weights: see Of
	KVF32
	KVBF16 // half the memory, and attention multiplies bf16: queries and weights are rounded too
)

var kvNames = [...]string{"auto", "f32", "bf16"}

func (t KVType) String() string { return kvNames[t] }

// ParseKVType is the type of a name: auto, f32 or bf16. An empty one is auto.
func ParseKVType(name string) (KVType, error) {
	if name == "" {
		return KVAuto, nil
	}
	for i, n := range kvNames {
		if n == name {
			return KVType(i), nil
		}
	}
	return 0, fmt.Errorf("%q is no type of keys and values: want auto, f32 or bf16", name)
}

// Of is t, or, where it is KVAuto, the type for a network of such blocks: f32 where their weights are f32 or f16, which hold more than
// bf16 does, else bf16.
func (t KVType) Of(blocks []Block) KVType {
	switch {
	case t != KVAuto:
		return t
	case len(blocks) == 0 || len(blocks[0].QKV) == 0:
		return KVF32
	}
	switch blocks[0].QKV[0].W.Type() {
	case gemm.F32, gemm.F16:
		return KVF32
	}
	return KVBF16
}
