package model_test

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// logitSums has a hash of the logits of trees of random models: the same on every processor. A comparison of one
// processor's levels cannot see that; compilers for some fuse products with sums, and functions of
// package math differ. Keys and values are f32 where nothing else is said.
var logitSums = map[string]uint64{
	"tiny-llama2 F16":             0x358995253c7dfe07,
	"tiny-llama3 F32":             0xc940e45ad2878b2b,
	"tiny-llama3 Q8_0":            0xa3c336168d962490,
	"tiny-qwen2 BF16":             0x687e099695dc8b08,
	"tiny-qwen3 Q8_0":             0x2a12050aaff54292,
	"tiny-llama3 Q4_0":            0x8a940a8aa9d5ed73,
	"tiny-llama3 Q4_1":            0x8f5c243d2e7b5cd8,
	"tiny-qwen3 Q5_0":             0xb190e2c5231cc62f,
	"tiny-qwen3 Q5_1":             0x826a12e125e69ab4,
	"tiny-gptneox BF16":           0x261786613a1a1edb,
	"tiny-gptneox-sequential F32": 0x80b1f61250d276fb,

	"tiny-llama2 F16 bf16":             0xf867026950b7842a,
	"tiny-llama3 F32 bf16":             0x9a95ae6734379ad8,
	"tiny-llama3 Q8_0 bf16":            0x2ca5d1882c7be5b6,
	"tiny-qwen2 BF16 bf16":             0x7e799ded825b1fab,
	"tiny-qwen3 Q8_0 bf16":             0xce46d1e62780f366,
	"tiny-llama3 Q4_0 bf16":            0xd043118e1f234dfb,
	"tiny-llama3 Q4_1 bf16":            0xbc0e9351833c9ef1,
	"tiny-qwen3 Q5_0 bf16":             0x4b0860d6b194f76a,
	"tiny-qwen3 Q5_1 bf16":             0x2ce21ab0715a2988,
	"tiny-gptneox BF16 bf16":           0xcc4b2ac92e092bdf,
	"tiny-gptneox-sequential F32 bf16": 0xbf75f11e2be6e43a,
	"tiny-llama3 Q8_0 q8_0":            0x94e505dc8e84eea9,
	"tiny-qwen3 Q8_0 q8_0":             0x40baf8c986c88502,

	"tiny-llama3 IQ4_NL":      0xf62ac26824dabe03,
	"tiny-llama3 IQ4_NL bf16": 0x0460eca08f687550,
	"tiny-gpt-oss MXFP4":      0x927aad668926d399,
	"tiny-gpt-oss MXFP4 bf16": 0xb9073915a16656d4,
	"accuracy Q4_K":           0xabfb4c6cabe5f1b5,
	"accuracy Q4_K bf16":      0xa60b2caa86e87af9,
	"accuracy Q5_K":           0xf777a910a36ae0f2,
	"accuracy Q5_K bf16":      0x444d0b9a57330735,
	"accuracy Q6_K":           0xa23049758b8ec666,
	"accuracy Q6_K bf16":      0xd03e0e8f888d134e,
}

func TestEveryProcessorSameLogits(t *testing.T) {
	of := func(name string) synth.Shape {
		s, err := synth.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		shape synth.Shape
		typ   tensor.Type
	}{
		{of("tiny-llama2"), tensor.F16}, {of("tiny-llama3"), tensor.F32}, {of("tiny-llama3"),
			tensor.Q8_0}, {of("tiny-qwen2"), tensor.BF16},
		{of("tiny-qwen3"), tensor.Q8_0}, {of("tiny-llama3"), tensor.Q4_0}, {of("tiny-llama3"),
			tensor.Q4_1}, {of("tiny-qwen3"), tensor.Q5_0},
		{of("tiny-qwen3"), tensor.Q5_1}, {of("tiny-gptneox"), tensor.BF16}, {of("tiny-gptneox-sequential"), tensor.F32},
		{of("tiny-llama3"), tensor.IQ4_NL}, {of("tiny-gpt-oss"), tensor.MXFP4},
		// rows of whole blocks of 256
		{accuracyShape, tensor.Q4_K}, {accuracyShape, tensor.Q5_K}, {accuracyShape, tensor.Q6_K},
	} {
		path := writeShape(t, c.shape, c.typ)
		for _, kv := range []nn.KVType{nn.KVF32, nn.KVBF16, nn.KVQ8} {
			if kv == nn.KVQ8 && c.typ != tensor.Q8_0 {
				continue
			}
			name := c.shape.Name + " " + c.typ.String()
			if kv != nn.KVF32 {
				name += " " + kv.String()
			}
			everyLevelSameLogits(t, name, openFile(t, path, model.Options{Threads: 2, KV: kv}))
		}
	}
}

func everyLevelSameLogits(t *testing.T, name string, m *model.Model) {
	ctx := context.Background()
	levels := cpu.Levels()
	if len(levels) > 1 && m.KV() != nn.KVF32 { // a build of portable code alone has that of all caches, in .ci/run
		levels = slices.DeleteFunc(levels, func(l cpu.Level) bool { return l == cpu.Portable })
	}
	for _, level := range levels {
		func() {
			defer cpu.Use(level)()
			h := fnv.New64a()
			r := rand.New(rand.NewPCG(5, 6))
			p, cache := m.NewPass(), m.NewCache()
			if err := p.Prefill(ctx, cache, randomTokens(r, m, 40), false); err != nil {
				t.Fatal(err)
			}
			tr := tree.New(r.Int32N(int32(m.Config.Vocab)))
			all := []int32{0}
			for tr.Len() < 12 {
				all = append(all, int32(tr.Len()))
				tr.Append(r.IntN(tr.Len()), r.Int32N(int32(m.Config.Vocab)), 0)
			}
			if err := p.Run(ctx, []model.Rows{{Cache: cache, Tree: tr, Logits: all}}, nil); err != nil {
				t.Fatal(err)
			}
			for i := range all {
				for _, x := range p.Logits(0, i) {
					h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
				}
			}
			if got := h.Sum64(); got != logitSums[name] {
				t.Errorf("%v: %q: %#016x,", level, name, got)
			}
		}()
	}
}
