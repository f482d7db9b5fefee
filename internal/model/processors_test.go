package model_test

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// logitSums has hashes of the logits of trees with random models, which are the same on every processor.
// Comparing the levels of one processor cannot show that: compilers for some processors fuse products
// with sums, and functions of package math differ. Keys and values are f32 unless stated otherwise.
var logitSums = map[string]uint64{
	"tiny-llama2 F16":             0x16a6db763ee0c16b,
	"tiny-llama3 F32":             0x4e4791e79854f731,
	"tiny-llama3 Q8_0":            0x759908e87a4a671f,
	"tiny-qwen2 BF16":             0x5bd0edb62827451c,
	"tiny-qwen3 Q8_0":             0x9053b5d6d82afe50,
	"tiny-llama3 Q4_0":            0xd8efb14138a942c8,
	"tiny-llama3 Q4_1":            0xa5b002d402e1fcb3,
	"tiny-qwen3 Q5_0":             0x39dd624361b98a64,
	"tiny-qwen3 Q5_1":             0x7ae605694fbe6993,
	"tiny-gptneox BF16":           0x28110408f884f479,
	"tiny-gptneox-sequential F32": 0x771637692d3a2ebd,

	"tiny-llama2 F16 bf16":             0x7b4ebd589e37001e,
	"tiny-llama3 F32 bf16":             0xec8a484b230c7cd3,
	"tiny-llama3 Q8_0 bf16":            0x616a23a80149b0c3,
	"tiny-qwen2 BF16 bf16":             0xf3552bf23a7c39ec,
	"tiny-qwen3 Q8_0 bf16":             0x2ae555c4a7ccfd28,
	"tiny-llama3 Q4_0 bf16":            0xf6aa8d3c7843d61d,
	"tiny-llama3 Q4_1 bf16":            0x296a5b06043196ef,
	"tiny-qwen3 Q5_0 bf16":             0xc5db45d10e83bd79,
	"tiny-qwen3 Q5_1 bf16":             0xff52efae406e6903,
	"tiny-gptneox BF16 bf16":           0x05e2984613fea44b,
	"tiny-gptneox-sequential F32 bf16": 0x8334a7d01ccde503,
	"tiny-llama3 Q8_0 q8_0":            0xd2fac13dee968d15,
	"tiny-qwen3 Q8_0 q8_0":             0x7b9137bbb064f7fd,

	"tiny-llama3 IQ4_NL":      0x23f148fe16e4b68a,
	"tiny-llama3 IQ4_NL bf16": 0x481a5866c5937262,
	"tiny-gpt-oss MXFP4":      0xe07b7f04b3bde0a5,
	"tiny-gpt-oss MXFP4 bf16": 0xe9508c30927de503,
	"accuracy Q4_K":           0x4728c0be99850fe3,
	"accuracy Q4_K bf16":      0xca4053288a97c166,
	"accuracy Q5_K":           0x3753fcdc5791c02f,
	"accuracy Q5_K bf16":      0x49d0fb4bd61a8799,
	"accuracy Q6_K":           0x749f34e33da6038d,
	"accuracy Q6_K bf16":      0x2461b1bd7a2287d3,
	"accuracy Q2_K":           0x140c88830434720d,
	"accuracy Q2_K bf16":      0x00ef628ea6428695,
	"accuracy Q3_K":           0x61ebc6ebf426b359,
	"accuracy Q3_K bf16":      0x198e12bf9e460eea,
}

func TestEveryProcessorSameLogits(t *testing.T) {
	of := func(name string) synth.Shape {
		s, err := synth.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for i, c := range []struct {
		shape synth.Shape
		typ   tensor.Type
	}{
		{of("tiny-llama2"), tensor.F16}, {of("tiny-llama3"), tensor.F32}, {of("tiny-llama3"),
			tensor.Q8_0}, {of("tiny-qwen2"), tensor.BF16},
		{of("tiny-qwen3"), tensor.Q8_0}, {of("tiny-llama3"), tensor.Q4_0}, {of("tiny-llama3"),
			tensor.Q4_1}, {of("tiny-qwen3"), tensor.Q5_0},
		{of("tiny-qwen3"), tensor.Q5_1}, {of("tiny-gptneox"), tensor.BF16}, {of("tiny-gptneox-sequential"), tensor.F32},
		{of("tiny-llama3"), tensor.IQ4_NL}, {of("tiny-gpt-oss"), tensor.MXFP4},
		// these need rows of whole blocks of 256
		{accuracyShape, tensor.Q4_K}, {accuracyShape, tensor.Q5_K}, {accuracyShape, tensor.Q6_K},
		{accuracyShape, numtype.Q2_K}, {accuracyShape, numtype.Q3_K},
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
			everyLevelSameLogits(t, name, openFile(t, path, model.Options{Threads: 2, KV: kv}), i%3 == 0 && kv == nn.KVF32)
		}
	}
}

// everyLevelSameLogits checks the sum of a model's logits at the processor's levels. Portable code, which is slow,
// is one of them on demand: package gemm compares its products of every type with the others', and a build of it
// alone has all sums, in .ci/run.
func everyLevelSameLogits(t *testing.T, name string, m *model.Model, portable bool) {
	ctx := context.Background()
	levels := cpu.Levels()
	if len(levels) > 1 && !portable {
		levels = slices.DeleteFunc(levels, func(l cpu.Level) bool { return l == cpu.Portable })
	}
	for _, level := range levels {
		func() {
			defer cpu.Use(level)()
			h := fnv.New64a()
			r := rand.New(rand.NewPCG(5, 6))
			p, cache := m.NewPass(), m.NewCache()
			if err := p.Prefill(ctx, cache, randomTokens(r, m, 70), false); err != nil {
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
