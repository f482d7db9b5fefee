package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

func benchLevels(b *testing.B, f func(b *testing.B)) {
	for _, l := range cpu.Levels() {
		b.Run(l.String(), func(b *testing.B) {
			defer cpu.Use(l)()
			f(b)
		})
	}
}

func operand(n int) []float32 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// Attention's two kernels, on pages that lie in the second-level cache: GFLOP/s.
func BenchmarkAttention(b *testing.B) {
	const pages = 16
	for _, hd := range []int{64, 128} {
		for _, rows := range []int{1, 2, 4, 8, 16, 32} {
			q, o := operand(rows*hd), make([]float32, rows*hd)
			k, s := operand(pages*PageRows*hd), operand(rows*pages*PageRows)
			rate := func(b *testing.B, f func(page []float32, at int)) {
				for b.Loop() {
					for p := range pages {
						f(k[p*PageRows*hd:][:PageRows*hd], p*PageRows)
					}
				}
				flop := 2 * float64(rows*hd*pages*PageRows) * float64(b.N)
				b.ReportMetric(flop/float64(b.Elapsed()), "GFLOP/s")
			}
			name := fmt.Sprintf("hd%d/rows%d", hd, rows)
			b.Run("Scores/"+name, func(b *testing.B) {
				benchLevels(b, func(b *testing.B) {
					rate(b, func(page []float32, at int) { Scores(s[at:], pages*PageRows, q, hd, rows, hd, page) })
				})
			})
			b.Run("Mix/"+name, func(b *testing.B) {
				benchLevels(b, func(b *testing.B) {
					rate(b, func(page []float32, at int) { Mix(o, hd, s[at:], pages*PageRows, rows, hd, PageRows, page) })
				})
			})
		}
	}
}

func BenchmarkVector(b *testing.B) {
	for _, n := range []int{128, 1000, 4096} {
		x := operand(n)
		y := operand(n)
		w := operand(n)
		z := make([]float32, n)
		idx, val := make([]int32, 64), make([]float32, 64)
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"Add", func() { Add(z, x) }},
			{"Axpy", func() { Axpy(z, 1e-9, x) }},
			{"RMSNorm", func() { RMSNorm(z, x, w, 1e-6) }},
			{"LayerNorm", func() { LayerNorm(z, x, w, y, 1e-6) }},
			{"RopeHalf", func() { RopeHalf(z, x[:n/2], y[:n/2]) }},
			{"RopePairs", func() { RopePairs(z, x[:n/2], y[:n/2]) }},
			{"Exp", func() { Exp(z, x) }},
			{"Softmax", func() { copy(z, x); Softmax(z, 0.1) }},
			{"SiLUMul", func() { SiLUMul(z, x, y) }},
			{"GELUMul", func() { GELUMul(z, x, y) }},
			{"GELU", func() { GELU(z, x) }},
			{"TopK64", func() { TopK(x, idx, val) }},
		} {
			b.Run(fmt.Sprintf("%s/n%d", c.name, n), func(b *testing.B) {
				benchLevels(b, func(b *testing.B) {
					b.SetBytes(int64(4 * n))
					for b.Loop() {
						c.f()
					}
				})
			})
		}
	}
}

func BenchmarkLogits(b *testing.B) {
	const n = 151936
	x := operand(n)
	sink := float32(0)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"ArgMax", func() { sink += float32(ArgMax(x)) }},
		{"LogSumExp", func() { sink += LogSumExp(x) }},
		{"TopK10", topK(x, 10)},
		{"TopK64", topK(x, 64)},
		{"TopK1000", topK(x, 1000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchLevels(b, func(b *testing.B) {
				b.SetBytes(4 * n)
				for b.Loop() {
					c.f()
				}
			})
		})
	}
	_ = sink
}

func topK(x []float32, k int) func() {
	idx, val := make([]int32, k), make([]float32, k)
	return func() { TopK(x, idx, val) }
}
