package nn

import (
	"testing"

	"github.com/grovellm/grove/internal/kernels/gemm"
)

func TestKVType(t *testing.T) {
	for name, want := range map[string]KVType{"": KVAuto, "auto": KVAuto, "f32": KVF32, "bf16": KVBF16, "q8_0": KVQ8} {
		if got, err := ParseKVType(name); err != nil || got != want {
			t.Errorf("%q is %v (%v), want %v", name, got, err, want)
		}
	}
	if _, err := ParseKVType("q4_0"); err == nil {
		t.Error("q4_0: no error")
	}
	for typ, want := range map[gemm.Type]KVType{gemm.F32: KVF32, gemm.F16: KVF32, gemm.BF16: KVBF16,
		gemm.Q8_0: KVBF16, gemm.Q4_K: KVBF16} {
		w, err := gemm.New(typ, 1, 256)
		if err != nil {
			t.Fatal(err)
		}
		blocks := []Block{{QKV: []Linear{{W: w}}}}
		if got := KVAuto.Of(blocks); got != want {
			t.Errorf("weights of %v: %v, want %v", typ, got, want)
		}
		if got := KVF32.Of(blocks); got != KVF32 {
			t.Errorf("f32, asked for, is %v", got)
		}
	}
}

// If panels are full, a bf16 row takes half the memory of an f32 row, and a Q8_0 row takes 34 bytes for 32 numbers.
func TestRowBytes(t *testing.T) {
	for _, dim := range []int{32, 64, 128} {
		f := Pages{Layers: 3, Heads: 2, Dim: dim}
		h := Pages{Layers: 3, Heads: 2, Dim: dim, KV: KVBF16}
		q := Pages{Layers: 3, Heads: 2, Dim: dim, KV: KVQ8}
		if f.RowBytes() != 3*2*2*dim*4 || h.RowBytes()*2 != f.RowBytes() || q.RowBytes()*128 != f.RowBytes()*34 {
			t.Errorf("%d dimensions: %d bytes of f32, %d of bf16, %d of Q8_0", dim, f.RowBytes(), h.RowBytes(), q.RowBytes())
		}
	}
}
