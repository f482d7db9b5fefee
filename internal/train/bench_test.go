package train

import (
	"testing"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
)

// BenchmarkStep measures one step of the target recipe's shape.
func BenchmarkStep(b *testing.B) {
	for _, kind := range []gemm.Type{gemm.F32, gemm.BF16} {
		b.Run(kind.String(), func(b *testing.B) {
			pool := par.New(0)
			defer pool.Close()
			s := Shape{Vocab: 16384, Hidden: 256, Layers: 6, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 704,
				Context: 2048, RopeBase: 1e6, NormEps: 1e-6}
			n, err := NewNetwork(s, pool, kind)
			if err != nil {
				b.Fatal(err)
			}
			n.Init(1)
			const length, rows = 256, 8
			tokens, targets := make([]int32, length*rows), make([]int32, length*rows)
			for i := range tokens {
				tokens[i], targets[i] = int32(i*7919%s.Vocab), int32(i*104729%s.Vocab)
			}
			for b.Loop() {
				n.Gradient(tokens, length, autograd.Targets{Token: targets}, 1)
			}
			b.ReportMetric(float64(b.N*length*rows)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// BenchmarkOptimizer measures the optimiser's part of a step, including repacking.
func BenchmarkOptimizer(b *testing.B) {
	pool := par.New(0)
	defer pool.Close()
	n, err := NewNetwork(TargetRecipe().Shape, pool, gemm.BF16)
	if err != nil {
		b.Fatal(err)
	}
	n.Init(1)
	for _, p := range n.Params.All() {
		copy(p.Grad, p.Data)
	}
	o := newOptimizer(DefaultOptimizer(), pool, n.Params.All())
	b.Run("step", func(b *testing.B) {
		for b.Loop() {
			o.norm()
			o.step(1, 0.01, 1)
		}
	})
	b.Run("pack", func(b *testing.B) {
		for b.Loop() {
			n.Pack()
		}
	})
}
